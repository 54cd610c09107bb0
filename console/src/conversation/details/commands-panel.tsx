import { useEffect, useRef, useState } from 'preact/hooks'
import { type Command, CommandKind } from '#proto/command/v1/command_pb.js'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import type { Session } from '#proto/session/v1/session_pb.js'
import { isComposing } from '../../../../browser/chat/composing.ts'
import type { Api } from '../../api.ts'
import { useConsole } from '../../console-context.ts'
import { formatDistance, millisecondsOf } from '../../time.ts'
import { ActionButton, Dialog } from '../../ui/dialog.tsx'
import { Form, TextField, useForm } from '../../ui/form.tsx'
import { useAction, useLoad, usePolling } from '../../ui/load.tsx'
import { Button, FailureNotice, When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'

/** Returns true until the command has a final state, such as `completed` or `expired`. */
const isOpen = ({ state, kind }: Command) =>
  state === 'requested' || state === 'granted' || (state === 'accepted' && kind === CommandKind.NAVIGATION)

const nameOf = ({ kind }: Pick<Command, 'kind'>) => (kind === CommandKind.SCREENSHOT ? 'Screenshot' : 'Page suggestion')

const states: Record<string, [text: string, tone: string]> = {
  requested: ['Waiting for the visitor', 'info'],
  accepted: ['Accepted, opening the page', 'info'],
  completed: ['Completed', 'ok'],
  failed: ['Failed', 'warn'],
  declined: ['Declined', 'warn'],
  granted: ['Allowed, waiting for the image', 'info'],
  uploaded: ['Image received', 'ok'],
  denied: ['Denied', 'warn'],
  unsupported: ['Not supported by the browser', 'warn'],
  expired: ['Expired', 'warn'],
  cancelled: ['Cancelled', 'warn'],
}

const wordOf = ({ state }: Command) => states[state] ?? [state, 'warn']

const shownCommands = 6
/** The inbox stream does not report every decision of a visitor, so pending requests are polled. */
const pollMs = 1500
const kinds = [
  { kind: 'screenshot', icon: 'camera', name: 'Take a screenshot' },
  { kind: 'navigation', icon: 'link', name: 'Suggest a page' },
] as const

/** Sends navigation and screenshot requests, which the visitor allows or denies, and shows the results. */
export function CommandsPanel({ thread, session }: { thread: Thread; session: Session }) {
  const { api, inbox, announcer } = useConsole()
  const isOffline = inbox.presenceOf(thread.conversationId) === Presence.GONE
  const { sessionId } = session
  const [openForm, setOpenForm] = useState<'screenshot' | 'navigation'>()
  const section = useRef<HTMLElement>(null)
  const changes = thread.commandChanges.value
  const list = useLoad(async () => {
    return (await api.commands.listCommands({ sessionId, limit: shownCommands })).commands
  }, [sessionId])
  const commands = list.value ?? []
  usePolling(list.reload, commands.some(isOpen) ? pollMs : undefined)
  useEffect(() => {
    if (changes > 0) void list.reload()
  }, [changes])
  const latestState = commands[0] && `${nameOf(commands[0])}: ${wordOf(commands[0])[0]}`
  useEffect(() => {
    if (latestState) announcer.say(latestState)
  }, [latestState])

  /** Closes the form and moves the focus back to the button that opened it. */
  function closeForm() {
    section.current?.querySelector<HTMLElement>('[aria-expanded=true]')?.focus()
    setOpenForm(undefined)
  }

  return (
    <section class="details-section" ref={section}>
      <h3>Request</h3>
      {session.state === 'active' ? (
        <div class="line">
          {kinds.map(({ kind, icon, name }) => (
            <Button
              key={kind}
              kind="small"
              disabled={isOffline}
              aria-expanded={openForm === kind}
              onClick={() => setOpenForm(openForm === kind ? undefined : kind)}
              icon={icon}
              text={name}
            />
          ))}
        </div>
      ) : (
        <p class="hint">The session has ended. You cannot send requests to this page.</p>
      )}
      {session.state === 'active' && isOffline && <p class="hint">The visitor is offline and would not see it.</p>}
      {openForm && !isOffline && (
        <RequestForm key={openForm} kind={openForm} session={session} onRequested={list.reload} onClose={closeForm} />
      )}
      <FailureNotice failure={list.failure} retry={list.reload} />
      {commands.length > 0 && (
        <ol class="stack">
          {commands.map((command) => {
            const { commandId, state, purpose, label, url, requestedAt, expiresAt } = command
            const about = purpose || label || url
            const left = millisecondsOf(expiresAt) - Date.now()
            const [text, tone] = wordOf(command)
            return (
              <li key={commandId} class="command">
                <div class="line">
                  <strong>{nameOf(command)}</strong>
                  <span class={`tag ${tone}`}>{text}</span>
                  <When at={requestedAt} />
                </div>
                {about && <p class="breakable">{about}</p>}
                {isOpen(command) && left > 0 && <p class="hint">Expires in {formatDistance(left)}</p>}
                {state === 'requested' && (
                  <ActionButton
                    kind="ghost small"
                    act={() => api.commands.cancelCommand({ commandId }).finally(list.reload)}
                    text="Cancel request"
                  />
                )}
                {state === 'uploaded' && <Screenshot command={command} />}
              </li>
            )
          })}
        </ol>
      )}
    </section>
  )
}

interface RequestFormProps {
  kind: 'screenshot' | 'navigation'
  session: Session
  onRequested: () => Promise<void>
  onClose: () => void
}

function RequestForm({ kind, session: { sessionId, origin }, onRequested, onClose }: RequestFormProps) {
  const { commands } = useConsole().api
  const form = useForm({
    start: { purpose: '', url: `${origin}/`, label: '' },
    problemsOf: ({ url }) => ({
      url:
        kind === 'screenshot' || /^https?:$/.test(URL.parse(url.trim())?.protocol ?? '')
          ? undefined
          : 'Enter a full URL that starts with http:// or https://.',
    }),
    async save({ purpose, url, label }) {
      if (kind === 'screenshot') await commands.requestScreenshot({ sessionId, purpose: purpose.trim() || undefined })
      else await commands.requestNavigation({ sessionId, url: url.trim(), label: label.trim() || undefined })
      onClose()
      await onRequested()
    },
  })
  return (
    <Form
      form={form}
      class="stack request-form"
      button="Send request"
      kind="primary small"
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !isComposing(event)) onClose()
      }}
      actions={<Button kind="ghost small" onClick={onClose} text="Cancel" />}
    >
      {kind === 'screenshot' ? (
        <TextField
          label="Purpose"
          hint="Shown to the visitor, who allows or denies the request."
          maxLength={256}
          takesFocus
          {...form.field('purpose')}
        />
      ) : (
        <>
          <TextField
            label="URL"
            hint={`Must be on ${origin} or another allowed address.`}
            inputMode="url"
            maxLength={2048}
            takesFocus
            {...form.field('url')}
          />
          <TextField label="Label" hint="Shown to the visitor." maxLength={128} {...form.field('label')} />
        </>
      )}
    </Form>
  )
}

/** Shows an uploaded screenshot. Loads it when the dialog opens, and releases it when the dialog closes. */
function Screenshot({ command }: { command: Command }) {
  const { api } = useConsole()
  const { busy, failure, run } = useAction()
  const [src, setSrc] = useState<string>()
  const about = command.purpose ? `Screenshot: ${command.purpose}` : 'Screenshot of the visitor’s page'

  useEffect(() => () => void (src && URL.revokeObjectURL(src)), [src])

  return (
    <>
      <FailureNotice failure={failure} />
      <Button
        kind="small"
        disabled={busy}
        onClick={() => run(async () => setSrc(URL.createObjectURL(await fetchScreenshot(api, command.commandId))))}
        text={busy ? 'Loading…' : `View image (${Math.ceil((command.byteLength ?? 0) / 1024)} KiB)`}
      />
      {src !== undefined && (
        <Dialog title={about} onClose={() => setSrc(undefined)} wide>
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
