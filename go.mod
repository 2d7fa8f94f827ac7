module hecate

go 1.26.8
