import type { Platform } from '../../../../browser/platform.ts'
import type { AgentRequest } from '../../vocabulary/types.ts'
import { box, button, element, hasFocus } from '../elements/elements.ts'
import { codeOf, problemOf, type RequestStepsDeps } from './request-steps.ts'

const defaultMaxBytes = 5 * 1024 * 1024

/**
 * Creates the steps of a screenshot request: choose, preview, send. Reports the visitor's consent
 * only when the visitor sends the previewed picture. Deletes the picture when the request ends.
 */
export function createScreenshotSteps(
  { id, purpose }: AgentRequest,
  { client, texts, conceal, showProblem }: RequestStepsDeps,
  onBusy: (isBusy: boolean) => void,
) {
  const file = element('input', { type: 'file', accept: imageTypes.join(','), hidden: true, tabindex: '-1' })
  const share = button('primary', texts.shareScreen, () => preview(() => captureScreen(maxBytes(), conceal)))
  const choose = button(canCaptureScreen() ? 'secondary' : 'primary', texts.chooseImage, () => file.click())
  const decline = button('quiet', texts.noThanks, refuse)
  share.hidden = !canCaptureScreen()
  file.addEventListener('change', () => {
    const [chosen] = file.files ?? []
    file.value = ''
    if (chosen) void preview(() => pictureOf(chosen, maxBytes()))
  })

  const canvas = element('canvas', { class: 'preview', role: 'img', 'aria-label': texts.screenshotPreview })
  const send = button('primary', texts.sendScreenshot, deliver)
  const discard = button('quiet', texts.discard, showChoice)
  const bar = element('progress', { class: 'bar', max: '1', 'aria-label': texts.uploading(0) })
  const progressText = element('p', { class: 'note', 'aria-hidden': 'true' })
  const stop = button('quiet', texts.stop, () => sending?.abort())

  const choice = step(
    ...(purpose ? [element('p', { class: 'purpose', dir: 'auto' }, purpose)] : []),
    element('p', { class: 'note' }, texts.screenshotExplained),
    box('actions', share, choose, decline, file),
  )
  const look = step(canvas, element('p', { class: 'note' }, texts.screenshotPreview), box('actions', send, discard))
  const upload = step(bar, progressText, box('actions', stop))
  const body = box('request-body', choice, look, upload)
  let picture: Blob | undefined
  let sending: AbortController | undefined
  let isOver = false
  let isPreparing = false
  showChoice()

  return {
    element: body,
    update() {},
    dispose() {
      isOver = true
      sending?.abort()
      forget()
    },
  }

  async function preview(make: () => Promise<Blob | undefined>) {
    if (isPreparing) return
    isPreparing = true
    showProblem(undefined)
    try {
      const prepared = await make()
      if (isOver) return
      if (!prepared) return showProblem(texts.requestProblems.notAnImage)
      await drawPicture(canvas, prepared)
      if (isOver) return forget()
      picture = prepared
      show(look, send)
    } catch (error) {
      showProblem(error instanceof RangeError ? texts.requestProblems.tooLarge : texts.requestProblems.notStarted)
    } finally {
      isPreparing = false
    }
  }

  async function deliver() {
    if (!picture || sending) return
    const controller = new AbortController()
    sending = controller
    showProblem(undefined)
    showProgress(undefined)
    show(upload, stop)
    onBusy(true)
    let attempt: 'consent' | 'picture' = 'consent'
    try {
      await client.acknowledgeScreenshot(id, 'granted')
      attempt = 'picture'
      await client.uploadScreenshot(id, picture, {
        onProgress: showProgress,
        signal: controller.signal,
        upload: pageUpload,
      })
    } catch (error) {
      const { notUploaded, notAnswered } = texts.requestProblems
      if (isOver) return
      show(look, send)
      if (codeOf(error) !== 'aborted')
        showProblem(problemOf(error, texts, attempt === 'consent' ? notAnswered : notUploaded))
    } finally {
      sending = undefined
      onBusy(false)
    }
  }

  async function refuse() {
    showProblem(undefined)
    await client.acknowledgeScreenshot(id, 'denied').catch((error) => {
      if (!isOver) showProblem(problemOf(error, texts, texts.requestProblems.notAnswered))
    })
  }

  function showChoice() {
    forget()
    show(choice, share.hidden ? choose : share)
  }

  /** Shows a step. If the focus is in this card, moves it to the element `first` of the step. */
  function show(shown: HTMLElement, first: HTMLElement) {
    const hadFocus = hasFocus(body)
    for (const one of [choice, look, upload]) one.hidden = one !== shown
    if (hadFocus) first.focus({ preventScroll: true })
  }

  function showProgress(part: number | undefined) {
    if (part === undefined) bar.removeAttribute('value')
    else bar.value = part
    // Sent bytes may not have arrived at the service yet, so show at most 99 %.
    const text = texts.uploading(Math.min(99, Math.round((part ?? 0) * 100)))
    progressText.textContent = text
    bar.setAttribute('aria-label', text)
  }

  function forget() {
    picture = undefined
    canvas.width = 0
    canvas.height = 0
  }

  function maxBytes() {
    const asked = client.requests().find((one) => one.id === id)?.upload?.maxBytes
    return asked ?? client.config()?.limits.screenshotMaxBytes ?? defaultMaxBytes
  }
}

function step(...children: Node[]) {
  return element('div', { class: 'step', hidden: true }, ...children)
}

const imageTypes = ['image/png', 'image/jpeg', 'image/webp']

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

function canCaptureScreen() {
  return typeof navigator.mediaDevices?.getDisplayMedia === 'function'
}

/**
 * Takes one picture of the tab, window or screen that the visitor shares, then stops sharing.
 * Rejects if the visitor or the browser refuses.
 *
 * @param conceal called with true to hide the chat while the picture is taken, and with false to
 * show the chat again
 */
async function captureScreen(maxBytes: number, conceal: (isHidden: boolean) => void) {
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

/** The browser sends a frame only when the shared tab changes, so the chat is shown and hidden until then. */
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
async function pictureOf(file: Blob, maxBytes: number) {
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

/** A strict content security policy would block an object URL. */
async function drawPicture(canvas: HTMLCanvasElement, picture: Blob) {
  const bitmap = await createImageBitmap(picture)
  canvas.width = bitmap.width
  canvas.height = bitmap.height
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
  bitmap.close()
}

/** Encodes as PNG, or else as a JPEG that is reduced until it has at most `maxBytes`. */
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

/** Sends a request with XMLHttpRequest, because `fetch` does not report upload progress. */
const pageUpload: NonNullable<Platform['upload']> = (onProgress) => (input, init) =>
  new Promise((resolve, reject) => {
    const url = String(input)
    const request = new XMLHttpRequest()
    const fail = () => reject(new TypeError('The upload failed'))
    request.open(init?.method ?? 'POST', url)
    new Headers(init?.headers).forEach((value, name) => {
      request.setRequestHeader(name, value)
    })
    request.upload.addEventListener('progress', ({ lengthComputable, loaded, total }) => {
      if (lengthComputable && total > 0) onProgress?.(loaded / total)
    })
    request.addEventListener('load', () => {
      if (request.responseURL !== url) return fail()
      const retryAfter = request.getResponseHeader('Retry-After')
      const headers = retryAfter === null ? undefined : { 'Retry-After': retryAfter }
      resolve(new Response(request.responseText || null, { status: request.status, headers }))
    })
    for (const event of ['error', 'abort', 'timeout']) request.addEventListener(event, fail)
    init?.signal?.addEventListener('abort', () => request.abort(), { once: true })
    if (init?.signal?.aborted) return fail()
    request.send(init?.body as Blob)
  })
