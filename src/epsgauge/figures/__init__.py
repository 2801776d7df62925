"""What each picture shows, apart from how it is drawn."""
