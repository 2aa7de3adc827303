"""The verbs that span stages: from a spec to a plan, from a plan to a running server.

Each command of the command line is one of these and a report. Nothing here prints or exits.
"""
