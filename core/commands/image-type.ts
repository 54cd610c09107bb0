/** Media types of images that are taken, and how a file of each begins. */
const beginnings: Record<string, (bytes: Uint8Array) => boolean> = {
  'image/png': (bytes) => startsWith(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': (bytes) => startsWith(bytes, [0xff, 0xd8, 0xff]),
  'image/webp': (bytes) =>
    startsWith(bytes, [...Buffer.from('RIFF')]) && startsWith(bytes, [...Buffer.from('WEBP')], 8),
}

export const imageTypes: readonly string[] = Object.keys(beginnings)

/** Bytes that tell every type. */
export const imageBeginning = 12

/** Whether a file that begins like this can be of the type. */
export function isImageOfType(type: string, bytes: Uint8Array): boolean {
  return beginnings[type]?.(bytes) ?? false
}

function startsWith(bytes: Uint8Array, expected: number[], offset = 0): boolean {
  return bytes.length >= offset + expected.length && expected.every((byte, index) => bytes[offset + index] === byte)
}
