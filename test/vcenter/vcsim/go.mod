// A vCenter to test with, in a module of its own. Nothing here reaches the product's go.mod.
module github.com/machine-iac/machine-iac-operator/test/vcenter/vcsim

go 1.26.0

require github.com/vmware/govmomi v0.52.0

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)
