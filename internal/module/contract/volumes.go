package contract

import "fmt"

// maxVolumeSeconds is the maximum of spec.attachedVolumes.waitSeconds.
const maxVolumeSeconds = 86400

// checkAttachedVolumes checks spec.attachedVolumes.
func checkAttachedVolumes(meta *Metadata) {
	volumes := meta.Spec.AttachedVolumes
	if volumes == nil || volumes.WaitSeconds >= 1 && volumes.WaitSeconds <= maxVolumeSeconds {
		return
	}
	meta.AtField("spec.attachedVolumes.waitSeconds", fmt.Sprintf("is %d", volumes.WaitSeconds),
		fmt.Sprintf("write 1 to %d, or remove spec.attachedVolumes", maxVolumeSeconds))
}
