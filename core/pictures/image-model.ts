/** For each type, says whether a file begins like such an image. */
const signatures: Record<string, (bytes: Uint8Array) => boolean> = {
  'image/png': (bytes) => startsWith(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': (bytes) => startsWith(bytes, [0xff, 0xd8, 0xff]),
  'image/webp': (bytes) =>
    startsWith(bytes, [...Buffer.from('RIFF')]) && startsWith(bytes, [...Buffer.from('WEBP')], 8),
}

export const imageTypes: readonly string[] = Object.keys(signatures)

/** Enough bytes to identify the type. */
export const imageSignatureBytes = 12

export function isImageOfType(type: string, bytes: Uint8Array): boolean {
  return signatures[type]?.(bytes) ?? false
}

function startsWith(bytes: Uint8Array, expected: number[], offset = 0) {
  return bytes.length >= offset + expected.length && expected.every((byte, index) => bytes[offset + index] === byte)
}

export interface Image {
  contentType: string
  content: Uint8Array
}

/** What of a file is kept, and each width and height that it states. */
interface Parts {
  kept: Buffer[]
  sizes: number[]
}

const readers: Record<string, (file: Buffer) => Parts | undefined> = {
  'image/png': readPng,
  'image/jpeg': readJpeg,
  'image/webp': readWebp,
}

/**
 * Reads an image without decoding its pixels, and removes its metadata. Returns the violated rule for
 * another type (`contentType`), a size above the limit (`maximum`), and a file that is incomplete, animated
 * or has bytes after the image (`format`).
 */
export function readImage(bytes: Uint8Array, maxPixels: number): Image | string {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const contentType = imageTypes.find((type) => isImageOfType(type, file))
  if (contentType === undefined) return 'contentType'
  try {
    const parts = readers[contentType]!(file)
    if (!parts || parts.sizes.length === 0) return 'format'
    if (parts.sizes.some((size) => size < 1 || size > maxPixels)) return 'maximum'
    return { contentType, content: Buffer.concat(parts.kept) }
  } catch (error) {
    // A length in the file points behind its end.
    if (error instanceof RangeError) return 'format'
    throw error
  }
}

const pngChunks = new Set(['IHDR', 'PLTE', 'tRNS', 'sRGB', 'gAMA', 'IDAT', 'IEND'])

function readPng(file: Buffer): Parts | undefined {
  const kept = [file.subarray(0, 8)]
  const sizes: number[] = []
  for (let at = 8, end = at; ; at = end) {
    const name = file.toString('latin1', at + 4, at + 8)
    end = at + 12 + file.readUInt32BE(at)
    if (pngChunks.has(name)) kept.push(file.subarray(at, end))
    if (name === 'IHDR') sizes.push(file.readUInt32BE(at + 8), file.readUInt32BE(at + 12))
    if (name === 'IEND') return end === file.length ? { kept, sizes } : undefined
  }
}

const isJpegFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
/** Comments and application segments, except Adobe's about colours. */
const isJpegMetadata = (marker: number) => marker === 0xfe || (marker >= 0xe0 && marker <= 0xef && marker !== 0xee)

function readJpeg(file: Buffer): Parts | undefined {
  const kept = [file.subarray(0, 2)]
  const sizes: number[] = []
  for (let at = 2, end = at; ; at = end) {
    const marker = file.readUInt8(at + 1)
    if (file[at] !== 0xff) return undefined
    if (marker === 0xd9) return at + 2 === file.length ? { kept: [...kept, file.subarray(at)], sizes } : undefined
    end = at + 2 + file.readUInt16BE(at + 2)
    if (isJpegFrame(marker)) sizes.push(file.readUInt16BE(at + 5), file.readUInt16BE(at + 7))
    // The compressed pixels after the header of a scan end at the next marker.
    if (marker === 0xda) while (end < file.length && !isJpegMarker(file, end)) end += 1
    if (!isJpegMetadata(marker)) kept.push(file.subarray(at, end))
  }
}

function isJpegMarker(file: Buffer, at: number) {
  const next = file[at + 1]!
  return file[at] === 0xff && next !== 0 && !(next >= 0xd0 && next <= 0xd7)
}

const webpFrames = new Set(['VP8 ', 'VP8L'])
const alphaFlag = 0x10

function readWebp(file: Buffer): Parts | undefined {
  const kept: Buffer[] = []
  const sizes: number[] = []
  let frames = 0
  for (let at = 12, end = at; at < file.length; at = end) {
    const name = file.toString('latin1', at, at + 4)
    const byteLength = file.readUInt32LE(at + 4)
    end = at + 8 + byteLength + (byteLength % 2)
    if (end > file.length) return undefined
    const chunk = Buffer.from(file.subarray(at, end))
    if (name === 'VP8 ') sizes.push(chunk.readUInt16LE(14) & 0x3fff, chunk.readUInt16LE(16) & 0x3fff)
    if (name === 'VP8L') sizes.push((chunk.readUInt32LE(9) & 0x3fff) + 1, ((chunk.readUInt32LE(9) >>> 14) & 0x3fff) + 1)
    if (name === 'VP8X') {
      sizes.push(chunk.readUIntLE(12, 3) + 1, chunk.readUIntLE(15, 3) + 1)
      chunk[8]! &= alphaFlag
    }
    if (webpFrames.has(name)) frames += 1
    if (webpFrames.has(name) || name === 'VP8X' || name === 'ALPH') kept.push(chunk)
  }
  if (file.readUInt32LE(4) + 8 !== file.length || frames !== 1) return undefined
  const header = Buffer.from(file.subarray(0, 12))
  header.writeUInt32LE(4 + kept.reduce((sum, { length }) => sum + length, 0), 4)
  return { kept: [header, ...kept], sizes }
}
