import type { Session } from '#proto/session/v1/session_pb.js'
import { useConsole } from '../../console-context.ts'
import { DialogButton } from '../../ui/dialog.tsx'
import { ReasonField, SelectField } from '../../ui/form.tsx'
import { When } from '../../ui/page.tsx'
import type { Thread } from '../thread.ts'

const addressBans = [
  ['', 'No'],
  ['3600', 'For 1 hour'],
  ['86400', 'For 1 day'],
  ['604800', 'For 7 days'],
  ['2592000', 'For 30 days'],
] as const

export function Moderation({ thread, session, name }: { thread: Thread; session: Session; name: string }) {
  const { api } = useConsole()
  const { sessionId, state, visitorBanned, addressKnown, addressBannedUntil } = session
  const isVerified = session.identityState === 'verified'
  async function act(call: Promise<{ session?: Session }>) {
    thread.setSession((await call).session)
  }

  return (
    <section class="details-section">
      <h3>Moderation {visitorBanned && <span class="tag bad">Banned</span>}</h3>
      {visitorBanned && (
        <p class="hint">
          {isVerified
            ? 'This verified visitor and this tab cannot start a new session until you lift the ban.'
            : 'This tab cannot start a new session until you lift the ban.'}{' '}
          {addressBannedUntil ? (
            <>
              The network address is banned until <When at={addressBannedUntil} />.
            </>
          ) : (
            'The network address is not banned.'
          )}
        </p>
      )}
      {state === 'banned' && !visitorBanned && (
        <p class="hint">Ban lifted. The visitor can start a new session. This session stays ended.</p>
      )}
      <div class="line">
        {state === 'active' && (
          <DialogButton
            button="Revoke session"
            title={`Revoke ${name}’s session?`}
            action="Revoke session"
            danger
            done="Session revoked."
            onConfirm={() => act(api.sessions.revokeSession({ sessionId }))}
          >
            <p>
              This session ends within a second on every page where it is open and cannot be reopened. The visitor is
              notified and can start a new session. The conversation is kept.
            </p>
          </DialogButton>
        )}
        {visitorBanned ? (
          <DialogButton
            button="Lift ban"
            title={`Lift the ban on ${name}?`}
            action="Lift ban"
            done="Ban lifted."
            onConfirm={() => act(api.sessions.unbanVisitor({ sessionId }))}
          >
            <p>The visitor can start a new session. Sessions that the ban ended stay ended.</p>
          </DialogButton>
        ) : (
          <DialogButton
            button="Ban visitor"
            kind="small danger-quiet"
            title={`Ban ${name}?`}
            action="Ban visitor"
            danger
            start={{ reason: '', seconds: '' }}
            done="Visitor banned."
            onConfirm={({ reason, seconds }) => {
              const addressBanSeconds = Number(seconds) || undefined
              const ban = { sessionId, reason: reason.trim(), addressBanSeconds }
              return act(api.sessions.banVisitor(ban))
            }}
          >
            {({ draft, field }) => (
              <>
                <p>
                  Every active session of this visitor ends within a second.{' '}
                  {isVerified
                    ? 'They cannot sign in to the chat again, in any browser.'
                    : 'This tab cannot start a new session.'}{' '}
                  An anonymous chat from a new tab or a private window stays possible, unless you also ban the network
                  address. The visitor sees that they are banned, but not the reason. You can lift the ban later.
                </p>
                <ReasonField {...field('reason')} />
                {addressKnown ? (
                  <SelectField
                    label="Also ban the network address"
                    options={addressBans}
                    hint={
                      draft.seconds &&
                      'Everyone at this address is affected, for example a whole office: new chats are rejected, and open ones end within 15 minutes.'
                    }
                    {...field('seconds')}
                  />
                ) : (
                  <p class="hint">The network address of this session is not known, so it cannot be banned.</p>
                )}
              </>
            )}
          </DialogButton>
        )}
      </div>
    </section>
  )
}
