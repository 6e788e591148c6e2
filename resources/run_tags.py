"""The tags of Dagster runs that Bookferry writes and reads. Histories contain them, so they never change."""

TENANT = "bookferry/tenant"
"""The tenant that a run is for."""

REQUESTED_RESOURCES = "bookferry/asked"
"""Resources that a person named on the command line, separated by blanks. A re-execution of the run inherits them."""

STARTED_BY = "bookferry/started_by"
COMMAND_LINE = "command line"
"""Value of `STARTED_BY`: the command line ran it, and notifies people itself."""

NOTIFIED = "bookferry/told"
"""When the sensor `notifications` made the calls for a run."""

ENDED_AS_DEAD = "bookferry/gone"
"""When the sensor `dead_runs` ended a run whose process was gone."""
