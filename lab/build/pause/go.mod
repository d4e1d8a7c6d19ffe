module berth.dev/berth/lab/build/pause

go 1.26.0
