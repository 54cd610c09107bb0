import type { AgentRequest } from '../../vocabulary/feature-types.ts'
import { button, element, hasFocus } from '../elements/elements.ts'
import { pageUpload } from './page-upload.ts'
import { actions, codeOf, problemOf, type RequestStepsDeps } from './request-steps.ts'
import { canCaptureScreen, captureScreen, drawPicture, imageTypes, pictureOf } from './screen-capture.ts'

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
    element('div', { class: 'actions' }, share, choose, decline, file),
  )
  const look = step(canvas, element('p', { class: 'note' }, texts.screenshotPreview), actions(send, discard))
  const upload = step(bar, progressText, actions(stop))
  const body = element('div', { class: 'request-body' }, choice, look, upload)
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

  function maxBytes(): number {
    const asked = client.requests().find((one) => one.id === id)?.upload?.maxBytes
    return asked ?? client.config()?.limits.screenshotMaxBytes ?? defaultMaxBytes
  }
}

function step(...children: Node[]): HTMLElement {
  return element('div', { class: 'step', hidden: true }, ...children)
}
