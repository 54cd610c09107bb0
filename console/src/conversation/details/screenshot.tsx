import { useEffect, useRef, useState } from 'preact/hooks'
import type { Command } from '#proto/command/v1/command_pb.js'
import type { Api } from '../../api.ts'
import { useConsole } from '../../console-context.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { useAction } from '../../ui/load.tsx'
import { Button, FailureNotice } from '../../ui/page.tsx'

/**
 * Shows an uploaded screenshot in a dialog. Fetches it on demand and releases it when the dialog
 * closes.
 */
export function Screenshot({ command }: { command: Command }) {
  const { api } = useConsole()
  const { busy, failure, run } = useAction()
  const [src, setSrc] = useState<string>()
  const objectUrl = useRef<string | undefined>(undefined)
  const about = command.purpose ? `Screenshot: ${command.purpose}` : 'Screenshot of the visitor’s page'

  async function show() {
    objectUrl.current = URL.createObjectURL(await fetchScreenshot(api, command.commandId))
    setSrc(objectUrl.current)
  }

  function release() {
    if (objectUrl.current !== undefined) URL.revokeObjectURL(objectUrl.current)
    objectUrl.current = undefined
    setSrc(undefined)
  }
  useEffect(() => release, [])

  return (
    <>
      <FailureNotice failure={failure} />
      <Button kind="small" disabled={busy} onClick={() => run(show)}>
        {busy ? 'Loading…' : `View image (${Math.ceil((command.byteLength ?? 0) / 1024)} KiB)`}
      </Button>
      {src !== undefined && (
        <Dialog title={about} onClose={release} wide>
          <div class="stack dialog-body">
            <img class="screenshot" src={src} alt="Screenshot of the visitor’s page" />
          </div>
        </Dialog>
      )}
    </>
  )
}

const imageTypes = ['image/png', 'image/jpeg', 'image/webp']

async function fetchScreenshot({ commands }: Api, commandId: string): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let type = ''
  let expected = 0
  for await (const { part } of commands.getScreenshot({ commandId })) {
    if (part.case === 'header') {
      type = part.value.contentType
      expected = part.value.byteLength
    } else if (part.case === 'chunk') chunks.push(part.value as Uint8Array<ArrayBuffer>)
  }
  const blob = new Blob(chunks, { type: imageTypes.includes(type) ? type : 'application/octet-stream' })
  if (blob.size !== expected) throw new Error('screenshot is incomplete')
  return blob
}
