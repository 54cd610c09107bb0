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
