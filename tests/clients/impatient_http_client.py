"""The client of the layer http with a deadline that a test can wait for, and that a busy machine can
keep for an answer that is there.
"""

from pgperf.clients.loop import main
from pgperf.clients.programs.http_client import HttpClient

if __name__ == "__main__":
    HttpClient.deadline_s = 2.0
    main(HttpClient)
