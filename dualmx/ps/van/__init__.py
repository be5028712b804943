"""Vans: how messages travel between the processes of a job."""
