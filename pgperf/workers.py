"""What a Celery worker does for pgperf."""
