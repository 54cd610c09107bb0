/** Accepted image types, with a check of each type's first bytes. */
const signatures: Record<string, (bytes: Uint8Array) => boolean> = {
  'image/png': (bytes) => startsWith(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': (bytes) => startsWith(bytes, [0xff, 0xd8, 0xff]),
  'image/webp': (bytes) =>
    startsWith(bytes, [...Buffer.from('RIFF')]) && startsWith(bytes, [...Buffer.from('WEBP')], 8),
}

export const imageTypes: readonly string[] = Object.keys(signatures)

/** Number of first bytes that identify every type. */
export const imageSignatureBytes = 12

/** Whether a file with these first bytes can be of the type. */
export function isImageOfType(type: string, bytes: Uint8Array): boolean {
  return signatures[type]?.(bytes) ?? false
}

function startsWith(bytes: Uint8Array, expected: number[], offset = 0): boolean {
  return bytes.length >= offset + expected.length && expected.every((byte, index) => bytes[offset + index] === byte)
}
