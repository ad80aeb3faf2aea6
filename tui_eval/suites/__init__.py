"""What readers, and what changes suites, share whatever the format: ids, values with their lines, accepted values,
conversations to be saved.

May not: know a format (`formats` reads, finds, changes and saves suites), agents, or the store.
"""
