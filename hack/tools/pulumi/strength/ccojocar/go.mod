module github.com/ccojocar/zxcvbn-go

go 1.26.0
