"""What facts cost: time of a search, bytes, erasing, beside what others have for it."""
