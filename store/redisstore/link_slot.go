package redisstore

import "strconv"

// groups is the number of groups of hash slots, which are ranges. Each group has a breaker of its own,
// because a cluster's masters serve ranges of slots, and may be lost one by one.
const groups = 64

// groupOf returns the group of a part's hash slot.
func groupOf(part int) int {
	return int(slotOf(strconv.Itoa(part)) >> 8)
}

// slotOf returns the hash slot of a key's tag: its CRC16 (XMODEM), modulo the 16384 slots.
func slotOf(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}
