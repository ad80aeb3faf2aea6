"""Requests over HTTP: connections, tries, redirects, errors, and agents behind a JSON endpoint of somebody's own.

May not: know what a provider's messages mean; that is in the folder of the provider.
"""
