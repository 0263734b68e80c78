"""Application Managers: each decides for all operators of an application at once."""
