import { element } from '../elements/elements.ts'

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp']

const smallestEdge = 320
const frameWithinMs = 700
/** Maximum time to wait for the first video frame. A minimised window delivers no frame. */
const firstFrameWithinMs = 8_000
const nudgeMs = 400

/** Options that only Chromium supports. With them, the browser offers the current tab first. */
interface CaptureOptions extends DisplayMediaStreamOptions {
  preferCurrentTab?: boolean
  selfBrowserSurface?: 'include' | 'exclude'
}

export function canCaptureScreen(): boolean {
  return typeof navigator.mediaDevices?.getDisplayMedia === 'function'
}

/**
 * Takes one picture of the tab, window or screen that the visitor shares, then stops sharing.
 * Rejects if the visitor or the browser refuses.
 *
 * @param conceal called with true to hide the chat while the picture is taken, and with false to
 * show the chat again
 */
export async function captureScreen(maxBytes: number, conceal: (isHidden: boolean) => void): Promise<Blob> {
  const options: CaptureOptions = {
    video: { displaySurface: 'browser' },
    audio: false,
    preferCurrentTab: true,
    selfBrowserSurface: 'include',
  }
  const stream = await navigator.mediaDevices.getDisplayMedia(options)
  const video = element('video', { muted: true, playsinline: true })
  conceal(true)
  try {
    video.muted = true
    video.srcObject = stream
    await firstFrame(video, conceal)
    await nextFrames(video)
    return await encode(video, video.videoWidth, video.videoHeight, maxBytes)
  } finally {
    conceal(false)
    for (const track of stream.getTracks()) track.stop()
    video.srcObject = null
  }
}

/**
 * Waits for the first video frame. The browser sends a frame only when the shared tab changes. So
 * this function shows and hides the chat repeatedly until a frame arrives.
 */
async function firstFrame(video: HTMLVideoElement, conceal: (isHidden: boolean) => void) {
  let isPlaying = false
  const playing = video.play().then(() => {
    isPlaying = true
  })
  for (let waitedMs = 0; waitedMs < firstFrameWithinMs; waitedMs += 2 * nudgeMs) {
    await Promise.race([playing, delay(nudgeMs)])
    if (isPlaying) return
    conceal(false)
    await Promise.race([playing, delay(nudgeMs)])
    conceal(true)
  }
  if (!isPlaying) throw new DOMException('The shared surface delivered no video frame', 'TimeoutError')
}

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Waits for a few more video frames, because the first ones may still show the chat. */
async function nextFrames(video: HTMLVideoElement) {
  for (let frames = 0; frames < 3; frames += 1) {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, frameWithinMs / 3)
      if ('requestVideoFrameCallback' in video) video.requestVideoFrameCallback(() => resolve())
    })
  }
  await delay(120)
}

/**
 * Prepares the picture file that the visitor chose. A PNG or WebP file of at most `maxBytes` stays
 * unchanged. A JPEG file is encoded again, which removes metadata such as the location. A larger
 * picture is reduced to `maxBytes`. Resolves to undefined if the file is not a picture.
 */
export async function pictureOf(file: Blob, maxBytes: number): Promise<Blob | undefined> {
  if (!imageTypes.includes(file.type)) return undefined
  const bitmap = await createImageBitmap(file).catch(() => undefined)
  if (!bitmap) return undefined
  try {
    if (file.type !== 'image/jpeg' && file.size <= maxBytes) return new Blob([file], { type: file.type })
    return await encode(bitmap, bitmap.width, bitmap.height, maxBytes, file.type === 'image/jpeg')
  } finally {
    bitmap.close()
  }
}

/**
 * Draws the picture on a canvas. The picture is not shown with an object URL, because a strict
 * content security policy blocks such URLs.
 */
export async function drawPicture(canvas: HTMLCanvasElement, picture: Blob) {
  const bitmap = await createImageBitmap(picture)
  canvas.width = bitmap.width
  canvas.height = bitmap.height
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
  bitmap.close()
}

/**
 * Encodes the picture as PNG if the PNG has at most `maxBytes`. Otherwise, encodes it as JPEG and
 * reduces the picture until the JPEG has at most `maxBytes`.
 */
async function encode(
  source: CanvasImageSource,
  width: number,
  height: number,
  maxBytes: number,
  isPhoto = false,
): Promise<Blob> {
  let scale = 1
  for (let tries = 0; Math.min(width, height) * scale >= Math.min(smallestEdge, width, height); tries += 1) {
    const canvas = element('canvas')
    canvas.width = Math.max(1, Math.round(width * scale))
    canvas.height = Math.max(1, Math.round(height * scale))
    canvas.getContext('2d')?.drawImage(source, 0, 0, canvas.width, canvas.height)
    const type = tries === 0 && !isPhoto ? 'image/png' : 'image/jpeg'
    const picture = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, 0.9))
    if (picture && picture.size > 0 && picture.size <= maxBytes) return picture
    if (tries > 0) scale *= 0.75
    if (tries > 12) break
  }
  throw new RangeError('The picture exceeds the maximum size')
}
