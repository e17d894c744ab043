// Package addresses knows which pools a providerSpec takes addresses from, and puts the addresses that a Machine was given into its providerSpec.
// It knows no cluster: claims are made elsewhere.
package addresses
