"""Follow targets that no pose meets, frame by frame, such as tracked points of a hand of other proportions."""
