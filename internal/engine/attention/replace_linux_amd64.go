//go:build cgo && !noengine

package attention

/*
#cgo CFLAGS: -O3
#cgo LDFLAGS: -Wl,--wrap=ggml_compute_forward_flash_attn_ext
long hecate_attention_calls(void);
*/
import "C"

// Calls counts how often the replacement has computed, in this process.
func Calls() int64 { return int64(C.hecate_attention_calls()) }
