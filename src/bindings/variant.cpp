// Stores in a custom section which of the four builds this is, so that the loader can tell from the bytes.
__asm__(".section .custom_section.attn,\"\",@\n.ascii \"" ATTN_WASM_VARIANT "\"\n");
