import type { Retention, RetentionPeriod } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { inSentence } from '../language.ts'
import { areaName, pathOf } from '../router.ts'
import { countOf } from '../time.ts'
import { DeleteCard } from '../ui/dialog.tsx'
import { Form, NameCard, numberProblem, SelectField, TextField, useForm } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Facts, Page, When } from '../ui/page.tsx'

type RetentionKind = Exclude<keyof Retention, '$typeName' | '$unknown'>

/** For each kind of data, what is removed and when. The form has this order. */
const retentionHints: Record<RetentionKind, string> = {
  conversations: 'After the last message. Messages, sessions and screenshots are removed. Leads stay.',
  leads: 'After they were captured. Their deliveries are removed too.',
  emptySessions: 'After they ended.',
  audit: 'The history of destinations and records of erasures.',
  heldDeliveries: 'Deliveries that wait for a disabled destination.',
}
const retentionKinds = Object.keys(retentionHints) as RetentionKind[]

const maxDays = 3_650

interface PeriodInput {
  choice: 'default' | 'forever' | 'days'
  days: string
}

function inputOf(period: RetentionPeriod | undefined): PeriodInput {
  const days = period?.period.case === 'days' ? String(period.period.value) : '30'
  return { choice: !period || period.isDefault ? 'default' : (period.period.case ?? 'forever'), days }
}

function defaultText(period: RetentionPeriod | undefined) {
  if (!period?.isDefault) return 'Default of the service'
  return `Default (${period.period.case === 'days' ? countOf(period.period.value, '# day', '# days') : 'no limit'})`
}

export function WorkspaceView({ onRenamed }: { onRenamed: () => void }) {
  const { api, holder, session } = useConsole()
  const loaded = useLoad(() => api.workspaces.getWorkspace({}), [])
  return (
    <Page
      title={loaded.value?.workspace?.name ?? areaName('workspace')}
      lead={<code>{session.workspaceId}</code>}
      actions={
        <a class="button" href={pathOf({ view: 'changes' })}>
          Changes
        </a>
      }
    >
      <WhenLoaded loaded={loaded} what="workspace">
        {({ workspace, lastBackups }) => (
          <>
            {session.scopes.includes('workspaces:write') && (
              <NameCard
                name={workspace!.name}
                button="Save name"
                done="Name saved."
                save={(name) => api.workspaces.updateWorkspace({ name }).then(loaded.reload).then(onRenamed)}
              />
            )}
            <RetentionCard stored={workspace?.retention} onSaved={loaded.reload} />
            <Card title="Backups">
              <Facts
                of={[
                  ['Last backup of the service', lastBackups?.backup ? <When at={lastBackups.backup} full /> : 'Never'],
                  ['Last restore drill', lastBackups?.drill ? <When at={lastBackups.drill} full /> : 'Never'],
                ]}
              />
            </Card>
            <DeleteCard
              what="workspace"
              name={workspace!.name}
              explanation="All connections, websites, conversations, leads and destinations of the workspace are removed, and open chats end."
              onDelete={async () => {
                await api.workspaces.deleteWorkspace({ workspaceId: workspace!.workspaceId })
                holder.signOut()
              }}
            />
          </>
        )}
      </WhenLoaded>
    </Page>
  )
}

function RetentionCard({ stored, onSaved }: { stored: Retention | undefined; onSaved: () => unknown }) {
  const { api } = useConsole()
  const form = useForm({
    start: Object.fromEntries(retentionKinds.map((kind) => [kind, inputOf(stored?.[kind])])) as Record<
      RetentionKind,
      PeriodInput
    >,
    problemsOf: (inputs) =>
      Object.fromEntries(
        Object.entries(inputs).map(([kind, { choice, days }]) => [
          kind,
          choice === 'days' ? numberProblem(days, 1, maxDays, ' days') : undefined,
        ]),
      ),
    async save(_, edited) {
      const retention = Object.fromEntries(Object.entries(edited).map(([kind, input]) => [kind, periodOf(input)]))
      await api.workspaces.updateWorkspace({ retention })
      await onSaved()
    },
    done: 'Retention saved.',
  })

  return (
    <Card title="Retention">
      <Form form={form} button="Save retention">
        <p class="hint">Data that is older is removed for good, within hours. A shorter period takes effect at once.</p>
        {retentionKinds.map((kind) => {
          const input = form.draft[kind]
          return (
            <div key={kind} class="stack">
              <SelectField
                label={fieldWords([kind])}
                hint={retentionHints[kind]}
                value={input.choice}
                options={[
                  ['default', defaultText(stored?.[kind])],
                  ['days', 'For a number of days'],
                  ['forever', 'No limit'],
                ]}
                onChange={(choice) => form.set({ [kind]: { ...input, choice: choice as PeriodInput['choice'] } })}
              />
              {input.choice === 'days' && (
                <TextField
                  label={`Days (${inSentence(fieldWords([kind]))})`}
                  type="number"
                  min={1}
                  max={maxDays}
                  value={input.days}
                  error={form.isChecked ? form.problems[kind] : undefined}
                  onChange={(days) => form.set({ [kind]: { ...input, days } })}
                />
              )}
            </div>
          )
        })}
      </Form>
    </Card>
  )
}

/** Returns the period to send. An empty object resets the period to the default. */
function periodOf({ choice, days }: PeriodInput) {
  if (choice === 'default') return {}
  return { period: choice === 'days' ? { case: choice, value: Number(days) } : { case: choice, value: true } }
}
