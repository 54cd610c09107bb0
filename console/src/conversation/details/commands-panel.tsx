import { useEffect, useRef, useState } from 'preact/hooks'
import type { Command } from '#proto/command/v1/command_pb.js'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import type { Session } from '#proto/session/v1/session_pb.js'
import { useConsole } from '../../console-context.ts'
import { dateOf, formatDistance } from '../../time.ts'
import { useAction, useLoad, usePolling } from '../../ui/load.tsx'
import { Button, FailureNotice, Icon, When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'
import { isOpen, nameOf, stateText, toneOf } from './command-words.ts'
import { type CommandInput, RequestForm } from './request-form.tsx'
import { Screenshot } from './screenshot.tsx'

const shownCommands = 6
/** The inbox stream does not report every decision of a visitor, so pending requests are polled. */
const pollMs = 1500
const kinds = [
  { kind: 'screenshot', icon: 'camera', name: 'Take a screenshot' },
  { kind: 'navigation', icon: 'link', name: 'Suggest a page' },
] as const

/**
 * Sends navigation and screenshot requests to the visitor's page and shows the results. The visitor
 * allows or denies each request.
 */
export function CommandsPanel({ thread, session }: { thread: Thread; session: Session }) {
  const { api, inbox, operations, announcer } = useConsole()
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
  const latestState = commands[0] && `${nameOf(commands[0])}: ${stateText(commands[0])}`
  useEffect(() => {
    if (latestState) announcer.say(latestState)
  }, [latestState])

  /** Closes the form and moves the focus back to the button that opened it. */
  function closeForm() {
    section.current?.querySelector<HTMLElement>('[aria-expanded=true]')?.focus()
    setOpenForm(undefined)
  }

  async function request(kind: 'screenshot' | 'navigation', input: CommandInput) {
    const target = `${kind} ${sessionId} ${JSON.stringify(input)}`
    const clientOperationId = operations.keyFor(target)
    if (kind === 'screenshot') {
      await api.commands.requestScreenshot({ sessionId, clientOperationId, purpose: input.purpose })
    } else {
      await api.commands.requestNavigation({ sessionId, clientOperationId, url: input.url!, label: input.label })
    }
    operations.finish(target)
    closeForm()
    await list.reload()
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
            >
              <Icon name={icon} />
              {name}
            </Button>
          ))}
        </div>
      ) : (
        <p class="hint">The session has ended. You cannot send requests to this page.</p>
      )}
      {session.state === 'active' && isOffline && <p class="hint">The visitor is offline and would not see it.</p>}
      {openForm && !isOffline && (
        <RequestForm
          key={openForm}
          kind={openForm}
          origin={session.origin}
          onRequest={(input) => request(openForm, input)}
          onCancel={closeForm}
        />
      )}
      <FailureNotice failure={list.failure} retry={() => void list.reload()} />
      {commands.length > 0 && (
        <ol class="stack">
          {commands.map((command) => (
            <CommandItem key={command.commandId} command={command} onChanged={list.reload} />
          ))}
        </ol>
      )}
    </section>
  )
}

function CommandItem({ command, onChanged }: { command: Command; onChanged: () => Promise<void> }) {
  const { api } = useConsole()
  const { busy, failure, run } = useAction()
  const { commandId, state, purpose, label, url, requestedAt, expiresAt } = command
  const about = purpose || label || url || ''
  const left = (dateOf(expiresAt)?.getTime() ?? 0) - Date.now()
  return (
    <li class="command">
      <div class="line">
        <strong>{nameOf(command)}</strong>
        <span class={`tag ${toneOf(state)}`}>{stateText(command)}</span>
        <When at={requestedAt} />
      </div>
      {about && <p class="breakable">{about}</p>}
      {isOpen(command) && left > 0 && <p class="hint">Expires in {formatDistance(left)}</p>}
      <FailureNotice failure={failure} />
      {state === 'requested' && (
        <Button
          kind="ghost small"
          disabled={busy}
          onClick={() => run(() => api.commands.cancelCommand({ commandId })).then(onChanged)}
        >
          Cancel request
        </Button>
      )}
      {state === 'uploaded' && <Screenshot command={command} />}
    </li>
  )
}
