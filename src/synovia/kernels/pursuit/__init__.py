"""Follow targets that no pose meets, frame by frame, as hands follow other hands."""
