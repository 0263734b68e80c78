"""Operator Managers: each proposes a change for one operator from what that operator alone can see."""
