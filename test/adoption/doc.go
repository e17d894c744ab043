// Package adoption tests adopt/ and inventory/ of the modules with a real engine, real providers and infrastructure that runs here: instances
// that something else has made are planned, brought in and listed, and those of others are refused. There is no manager.
package adoption
