import type { ComponentChildren } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import type { Failure } from '../failures.ts'
import { Picture } from './avatar.tsx'
import { FieldNotes } from './form.tsx'
import { useAction } from './load.tsx'
import { Button } from './page.tsx'
import { encodePicture, type PictureShape } from './picture-file.ts'

/** A picture as SetAgentPicture and SetLogo take it. */
interface PictureUpload {
  image: Uint8Array
  gatewayOrigin: string
}

interface PictureFieldProps {
  /** Name of the picture, such as `Logo`. */
  name: string
  hint: ComponentChildren
  shape: PictureShape
  /** Shown without a picture. */
  initials: string
  url: string | undefined
  /** Stores a picture, or removes it if the image is empty. */
  onSave: (picture: PictureUpload) => Promise<unknown>
}

/** Shows a picture, with buttons that replace and remove it. Changes are saved at once. */
export function PictureField({ name, hint, shape, initials, url, onSave }: PictureFieldProps) {
  const { announcer } = useConsole()
  const { busy, failure, run, clear } = useAction()
  const [problem, setProblem] = useState('')
  const file = useRef<HTMLInputElement>(null)
  const choose = useRef<HTMLButtonElement>(null)
  const id = useId()
  const error = problem || (failure && failureText(failure))

  const save = async (image: Uint8Array, done: string) => {
    if (await run(() => onSave({ image, gatewayOrigin: location.origin }))) announcer.say(`${name} ${done}.`)
  }

  async function upload() {
    const chosen = file.current!.files?.[0]
    if (!chosen) return
    clear()
    const image = await encodePicture(chosen, shape)
    // The same file can be chosen again.
    file.current!.value = ''
    setProblem(image ? '' : 'This file is no picture that the browser can read. Choose a PNG, JPEG or WebP file.')
    if (image) await save(image, 'saved')
  }

  async function remove() {
    setProblem('')
    // The button that has the focus disappears.
    choose.current!.focus()
    await save(new Uint8Array(), 'removed')
  }

  return (
    <fieldset class="field">
      <legend class="visually-hidden">{name}</legend>
      <div class="picture-field">
        <span class="avatar" aria-hidden="true">
          {initials}
          <Picture url={url} />
        </span>
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
          {url !== undefined && (
            <Button kind="small" disabled={busy} onClick={remove}>
              Remove
            </Button>
          )}
        </div>
      </div>
      <input ref={file} type="file" hidden accept="image/png,image/jpeg,image/webp" onChange={upload} />
      <FieldNotes id={id} hint={hint} error={error} />
    </fieldset>
  )
}

function failureText({ issues, text }: Failure): string {
  if (issues.some(({ path }) => path === '/gatewayOrigin'))
    return 'Visitors get pictures over https only. Open the console over https, or set PUBLIC_URL.'
  if (issues.some(({ rule }) => rule === 'maxItems')) return 'The workspace has too many pictures. Remove one first.'
  return issues.length > 0 ? 'This picture cannot be used. Choose another one.' : text
}
