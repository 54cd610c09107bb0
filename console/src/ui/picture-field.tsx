import type { ComponentChildren } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import type { Failure } from '../failures.ts'
import { Picture } from './avatar.tsx'
import { FieldNotes } from './form.tsx'
import { useAction } from './load.tsx'
import { Button } from './page.tsx'

interface PictureFieldProps {
  label: string
  hint: ComponentChildren
  shape: PictureShape
  /** Shown without a picture. */
  initials: string
  url: string | undefined
  /** Stores a picture, or removes it if the image is empty. Takes what SetAgentPicture and SetLogo take. */
  onSave: (picture: { image: Uint8Array; gatewayOrigin: string }) => Promise<unknown>
}

/** Shows a picture, with buttons that replace and remove it. Changes are saved at once. */
export function PictureField({ label, hint, shape, initials, url, onSave }: PictureFieldProps) {
  const { busy, failure, run, clear } = useAction()
  const [problem, setProblem] = useState('')
  const file = useRef<HTMLInputElement>(null)
  const choose = useRef<HTMLButtonElement>(null)
  const id = useId()
  const error = problem || (failure && failureText(failure))

  const save = (image: Uint8Array, done: string) => run(() => onSave({ image, gatewayOrigin: location.origin }), done)

  async function upload() {
    const chosen = file.current!.files?.[0]
    if (!chosen) return
    clear()
    const image = await encodePicture(chosen, shape)
    // The same file can be chosen again.
    file.current!.value = ''
    setProblem(image ? '' : 'This file is no picture that the browser can read. Choose a PNG, JPEG or WebP file.')
    if (image) await save(image, `${label} saved.`)
  }

  async function remove() {
    setProblem('')
    // The button that has the focus disappears.
    choose.current!.focus()
    await save(new Uint8Array(), `${label} removed.`)
  }

  return (
    <fieldset class="field">
      <legend class="visually-hidden">{label}</legend>
      <div class="picture-field">
        <Picture initials={initials} url={url} />
        <div class="line">
          <button
            ref={choose}
            type="button"
            class="button small"
            aria-describedby={`${id}-hint${error ? ` ${id}-error` : ''}`}
            aria-disabled={busy}
            onClick={() => busy || file.current!.click()}
          >
            {busy ? 'Saving…' : url === undefined ? 'Choose a file' : 'Replace'}
          </button>
          {url !== undefined && <Button kind="small" disabled={busy} onClick={remove} text="Remove" />}
        </div>
      </div>
      <input ref={file} type="file" hidden accept="image/png,image/jpeg,image/webp" onChange={upload} />
      <FieldNotes id={id} hint={hint} error={error} />
    </fieldset>
  )
}

function failureText({ issues, text }: Failure) {
  if (issues.some(({ path }) => path === '/gatewayOrigin'))
    return 'Visitors get pictures over https only. Open the console over https, or set PUBLIC_URL.'
  if (issues.some(({ rule }) => rule === 'maxItems')) return 'The workspace has too many pictures. Remove one first.'
  return issues.length > 0 ? 'This picture cannot be used. Choose another one.' : text
}

/** Shape of a stored picture: a face is cut to a square, a logo is shown whole in a circle. */
type PictureShape = 'face' | 'logo'

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
async function encodePicture(file: Blob, shape: PictureShape): Promise<Uint8Array | undefined> {
  const bitmap = await createImageBitmap(file).catch(() => undefined)
  if (!bitmap) return undefined
  const canvas = drawSquare(bitmap, shape)
  bitmap.close()
  for (const { type, quality, maxBytes } of encodings) {
    const encoded = await canvas.convertToBlob({ type, quality })
    // A browser that cannot encode a type returns PNG.
    if (encoded.type === type && encoded.size <= maxBytes) return new Uint8Array(await encoded.arrayBuffer())
  }
  return undefined
}

/** Returns the side of a square whose inner circle shows a logo; an almost square logo fills the square. */
function sideAround(width: number, height: number) {
  const longest = Math.max(width, height)
  return longest > 1.2 * Math.min(width, height) ? Math.ceil(Math.hypot(width, height)) : longest
}

function drawSquare(bitmap: ImageBitmap, shape: PictureShape) {
  const { width, height } = bitmap
  const square = shape === 'face' ? Math.min(width, height) : sideAround(width, height)
  const side = Math.min(square, sidePixels[shape])
  const canvas = new OffscreenCanvas(side, side)
  const scale = side / square
  const context = canvas.getContext('2d')!
  // Without this background, the initials behind a transparent picture would be visible.
  context.fillStyle = '#fff'
  context.fillRect(0, 0, side, side)
  context.imageSmoothingQuality = 'high'
  const [left, top] = [((square - width) / 2) * scale, ((square - height) / 2) * scale]
  context.drawImage(bitmap, left, top, width * scale, height * scale)
  return canvas
}
