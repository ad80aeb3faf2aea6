"""What keys do: plain objects made with the services they need, each handing over a mapping key id -> handler.

They know no app and, of the screen in front, only the protocol in `front`. What is shown is in `screens`; what is
known is in `state`.

May not: import the app, read files on its loop, draw.
"""
