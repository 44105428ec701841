"""Batch jobs of remote providers: many texts come in, jobs that outlive the process are made, vectors go out."""
