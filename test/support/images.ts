import { randomBytes } from 'node:crypto'

const beginnings = {
  'image/png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': Buffer.from([0xff, 0xd8, 0xff, 0xe0]),
  'image/webp': Buffer.from('RIFF\0\0\0\0WEBP', 'latin1'),
}

/** Returns random bytes that begin with the signature of the image type. */
export function imageOf(type: keyof typeof beginnings, byteLength: number): Buffer {
  return Buffer.concat([beginnings[type], randomBytes(byteLength - beginnings[type].length)])
}

const chunk = (name: string, data: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  return Buffer.concat([length, Buffer.from(name, 'latin1'), data, Buffer.alloc(4)])
}

/** Returns the structure of a PNG file. Its pixels cannot be decoded. */
export function pngOf({ width = 128, height = 128, extra = Buffer.alloc(0), pixels = 100 } = {}): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  const end = [chunk('IDAT', randomBytes(pixels)), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([beginnings['image/png'], chunk('IHDR', header), extra, ...end])
}

/** Returns a text chunk of a PNG file. */
export const pngText = (text: string) => chunk('tEXt', Buffer.from(`Comment\0${text}`))

const segment = (marker: number, data: Buffer) => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(data.length + 2, 2)
  return Buffer.concat([head, data])
}

/** Returns the structure of a JPEG file with metadata. Its pixels cannot be decoded. */
export function jpegOf({ width = 128, height = 128, metadata = 'GPS' } = {}): Buffer {
  const frame = Buffer.from([8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  frame.writeUInt16BE(height, 1)
  frame.writeUInt16BE(width, 3)
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xe1, Buffer.from(`Exif\0\0${metadata}`)),
    segment(0xfe, Buffer.from(metadata)),
    segment(0xc2, frame),
    segment(0xda, Buffer.from([1, 1, 0, 0, 63, 0])),
    Buffer.from([1, 2, 0xff, 0, 3, 0xff, 0xd0, 4]),
    segment(0xc4, Buffer.from([0, 1, 2])),
    segment(0xda, Buffer.from([1, 1, 0, 0, 63, 0])),
    Buffer.from([5, 0xff, 0xd9]),
  ])
}

const webpChunk = (name: string, data: Buffer) => {
  const head = Buffer.alloc(8)
  head.write(name, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}

/** Returns the structure of a WebP file with metadata. Its pixels cannot be decoded. */
export function webpOf({ width = 128, height = 128, frame = 'VP8 ', metadata = 'GPS' } = {}): Buffer {
  const canvas = Buffer.alloc(10)
  canvas[0] = 0x08
  canvas.writeUIntLE(width - 1, 4, 3)
  canvas.writeUIntLE(height - 1, 7, 3)
  const pixels = Buffer.alloc(17)
  if (frame === 'VP8 ') {
    pixels.writeUInt16LE(width, 6)
    pixels.writeUInt16LE(height, 8)
  } else pixels.writeUInt32LE((width - 1) | ((height - 1) << 14), 1)
  const chunks = [webpChunk('VP8X', canvas), webpChunk(frame, pixels), webpChunk('EXIF', Buffer.from(metadata))]
  return Buffer.concat([webpChunk('RIFF', Buffer.concat([Buffer.from('WEBP'), ...chunks]))])
}
