"""What a sync or a reshape is going to write to Placement: records, plans and errors. Pure."""
