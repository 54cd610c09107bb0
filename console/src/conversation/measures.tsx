import { useState } from 'preact/hooks'
import type { Session } from '#proto/session/v1/session_pb.js'
import { useConsole } from '../console-context.ts'
import { Confirm } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import type { Thread } from './thread.ts'

type Measure = 'revoke' | 'ban' | 'unban'

/** What is done against a visitor, and taken back. What stands is what the service says of the session. */
export function Measures({ thread, session, name }: { thread: Thread; session: Session; name: string }) {
  const { api, announcer } = useConsole()
  const [asked, setAsked] = useState<Measure>()
  const [reason, setReason] = useState('')
  const { sessionId, state, visitorBanned } = session
  const close = () => setAsked(undefined)

  async function done(call: Promise<{ session?: Session }>, text: string) {
    const answer = await call
    thread.takeSession(answer.session)
    announcer.say(text)
  }

  return (
    <section class="details-section">
      <h3>Measures {visitorBanned && <span class="tag bad">Banned</span>}</h3>
      {visitorBanned && (
        <p class="hint">
          {session.identityState === 'verified'
            ? 'This browser and this verified person get no new session until the ban is lifted.'
            : 'This browser gets no new session until the ban is lifted.'}
        </p>
      )}
      {state === 'banned' && !visitorBanned && (
        <p class="hint">The ban is lifted. The visitor can begin a new session; this one stays ended.</p>
      )}
      <div class="button-row">
        {state === 'active' && (
          <button type="button" class="button small" onClick={() => setAsked('revoke')}>
            Revoke session
          </button>
        )}
        {visitorBanned ? (
          <button type="button" class="button small" onClick={() => setAsked('unban')}>
            Lift the ban
          </button>
        ) : (
          <button type="button" class="button small danger-quiet" onClick={() => setAsked('ban')}>
            Ban visitor
          </button>
        )}
      </div>
      {asked === 'revoke' && (
        <Confirm
          title={`Revoke ${name}’s session?`}
          action="Revoke session"
          danger
          onClose={close}
          onConfirm={() => done(api.sessions.revokeSession({ sessionId }), 'The session is revoked.')}
        >
          <p>
            This session ends for good, within a second, on every page where it is open. The visitor is told and can
            begin a new session. The conversation stays.
          </p>
        </Confirm>
      )}
      {asked === 'ban' && (
        <Confirm
          title={`Ban ${name}?`}
          action="Ban visitor"
          danger
          onClose={close}
          onConfirm={() =>
            done(api.sessions.banVisitor({ sessionId, reason: reason.trim() }), 'The visitor is banned.')
          }
        >
          <p>
            Every live session of this visitor ends within a second and no new one is given to them
            {session.identityState === 'verified'
              ? ': neither to this browser nor to this verified person on any other.'
              : ' on this browser.'}{' '}
            The visitor is told of the ban, never of the reason. You can lift it again.
          </p>
          <TextField
            label="Reason"
            hint="For the record. Visitors never see it."
            maxLength={512}
            value={reason}
            onChange={setReason}
          />
        </Confirm>
      )}
      {asked === 'unban' && (
        <Confirm
          title={`Lift the ban on ${name}?`}
          action="Lift the ban"
          onClose={close}
          onConfirm={() => done(api.sessions.unbanVisitor({ sessionId }), 'The ban is lifted.')}
        >
          <p>The visitor can begin a new session again. Sessions that the ban ended stay ended.</p>
        </Confirm>
      )}
    </section>
  )
}
