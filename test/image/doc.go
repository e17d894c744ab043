// Package image tests the image that `make image` has made: it is unpacked, and its programs run in that root file system as in a Pod of the
// Deployment, as its user, with a root that is read-only but for what the Deployment mounts. The API server, the engines and the provider are
// real.
//
//	make image-check
//
// A file system is mounted and a root changed for that, which needs root; without, only what is in the image is tested.
package image
