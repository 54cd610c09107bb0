import { element } from './elements.ts'

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp']

const smallestEdge = 320
const frameWithinMs = 700
/** A source that shows nothing, such as a window that is minimised, gives no frame at all. */
const firstFrameWithinMs = 8_000
const nudgeMs = 400

/** The part of the options that Chromium adds: the visitor is offered this very tab first. */
interface CaptureOptions extends DisplayMediaStreamOptions {
  preferCurrentTab?: boolean
  selfBrowserSurface?: 'include' | 'exclude'
}

export function canCaptureScreen(): boolean {
  return typeof navigator.mediaDevices?.getDisplayMedia === 'function'
}

/**
 * One still picture of what the visitor chooses to share; the sharing ends with it, however it goes. Rejects where the
 * visitor or the browser refuses.
 *
 * @param conceal takes the chat out of the picture while it is taken.
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

/** A static page gives a new stream no frame, so the chat is hidden and shown until there is one. */
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
  if (!isPlaying) throw new DOMException('No frame came', 'TimeoutError')
}

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** The chat is gone from the screen two frames later, and from the stream a moment after that. */
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
 * A chosen file as it will be sent. PNG and WebP go as they are; a JPEG is written anew, since cameras put places and names
 * into it, and whatever is too large is made smaller. Undefined where it is no picture.
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

/** Draws the bytes that will be sent, without an object URL, which a strict page forbids. */
export async function drawPicture(canvas: HTMLCanvasElement, picture: Blob) {
  const bitmap = await createImageBitmap(picture)
  canvas.width = bitmap.width
  canvas.height = bitmap.height
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
  bitmap.close()
}

/** PNG if it fits, else JPEG with decreasing size. */
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
  throw new RangeError('The picture does not fit')
}
