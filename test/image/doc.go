// Package image tests the image from `make image`: it unpacks the image and runs its programs in that root file system
// as in a Pod of the Deployment, as its user and with a read-only root plus the Deployment's mounts. The API server,
// the engines and the provider are real.
//
//	make image-check
//
// Mounts and chroot need root; without root, only the image's content is tested.
package image
