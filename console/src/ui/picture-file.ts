/** Shape of a stored picture: a face is cut to a square, a logo is shown whole in a circle. */
export type PictureShape = 'face' | 'logo'

const sidePixels = { face: 128, logo: 256 }
/** A gateway accepts messages of 64 KiB. */
const maxBytes = 60_000
const smallBytes = 24_000
const encodings = [
  { type: 'image/png', maxBytes: smallBytes },
  { type: 'image/webp', quality: 0.9, maxBytes: smallBytes },
  { type: 'image/jpeg', quality: 0.85, maxBytes },
  { type: 'image/jpeg', quality: 0.5, maxBytes },
]

/**
 * Draws a picture again in the size in which it is stored. Its metadata, such as where a photo was
 * taken, is not drawn and so never leaves this browser.
 * Returns undefined if the file is no picture that the browser can read.
 */
export async function encodePicture(file: Blob, shape: PictureShape): Promise<Uint8Array | undefined> {
  const bitmap = await createImageBitmap(file).catch(() => undefined)
  if (!bitmap) return undefined
  const canvas = drawSquare(bitmap, shape)
  bitmap.close()
  for (const { type, quality, maxBytes } of encodings) {
    const encoded = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, quality))
    // A browser that cannot encode a type returns PNG.
    if (encoded?.type === type && encoded.size <= maxBytes) return new Uint8Array(await encoded.arrayBuffer())
  }
  return undefined
}

/** Returns the side of a square whose inner circle shows a logo; an almost square logo fills the square. */
function sideAround(width: number, height: number): number {
  const longest = Math.max(width, height)
  return longest > 1.2 * Math.min(width, height) ? Math.ceil(Math.hypot(width, height)) : longest
}

function drawSquare(bitmap: ImageBitmap, shape: PictureShape): HTMLCanvasElement {
  const { width, height } = bitmap
  const square = shape === 'face' ? Math.min(width, height) : sideAround(width, height)
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = Math.min(square, sidePixels[shape])
  const scale = canvas.width / square
  const context = canvas.getContext('2d')!
  // Without this background, the initials behind a transparent picture would be visible.
  context.fillStyle = '#fff'
  context.fillRect(0, 0, canvas.width, canvas.width)
  context.imageSmoothingQuality = 'high'
  const [left, top] = [((square - width) / 2) * scale, ((square - height) / 2) * scale]
  context.drawImage(bitmap, left, top, width * scale, height * scale)
  return canvas
}
