package db

// OpenVersion opens a database with the tables of an older version.
var OpenVersion = open
