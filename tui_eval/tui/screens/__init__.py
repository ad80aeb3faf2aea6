"""The screens and dialogs, a file each: what stands where, and which part of the state it shows.

May not: read files or the store (loaders), decide what a figure or a reason says (state), know the app's class.
"""
