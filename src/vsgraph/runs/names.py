"""What the files in the folder of a run are called."""

RECORD = "run.json"
LOCK = ".lock"
PAGE = "report.html"
STAGES = "stages"
STAGE_RECORD = "stage.json"  # the last file that a stage writes: its key, time and facts
ANSWERS = "answers"
TABLE = "crawl.parquet"  # a crawl that was given in memory
PARTS = "parts"  # what a cluster has made of stages that are not finished
STORE = ".store"  # in a working copy: the address of the run, and what was seen there
