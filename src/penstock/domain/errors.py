"""The one error a user can cause: it names the part, the value and the way out."""


class InputError(ValueError):
    """Something given to Penstock cannot be used; the message is one line for the user."""
