import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { backTo, pathOf } from '../router.ts'
import { ActionDialog } from '../ui/dialog.tsx'
import { changedForms } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Button, Empty, Page } from '../ui/page.tsx'
import { type Tab, TabContent } from './installation-tabs.tsx'
import { websiteName } from './installation-words.ts'

const tabs: [tab: Tab, label: string][] = [
  ['install', 'Install'],
  ['look', 'Look'],
  ['hours', 'Hours'],
  ['forms', 'Forms'],
  ['privacy', 'Privacy'],
  ['keys', 'Identity'],
]

const nearest = { block: 'nearest', inline: 'center' } as const

export function InstallationView({ siteKey, tab = 'install' }: { siteKey: string; tab?: string }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => {
    const { installations } = await api.workspaces.listInstallations({})
    return { installation: installations.find(({ publicSiteKey }) => publicSiteKey === siteKey) }
  }, [siteKey])
  useEffect(() => document.querySelector('.tabs [aria-current]')?.scrollIntoView(nearest), [tab])
  return (
    <Page
      title={loaded.value?.installation ? websiteName(loaded.value.installation) : 'Website'}
      back={backTo('installations')}
      lead={<code>{siteKey}</code>}
    >
      <nav class="tabs" aria-label="Settings">
        {tabs.map(([name, label]) => (
          <a
            key={name}
            href={pathOf({ view: 'installation', siteKey, tab: name === 'install' ? undefined : name })}
            aria-current={name === tab ? 'page' : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      <WhenLoaded loaded={loaded} what="website">
        {({ installation }) =>
          installation ? (
            <WithUnsavedBar key={tab}>
              {(revision) => (
                <TabContent
                  key={revision}
                  tab={tab}
                  installation={installation}
                  onChanged={(changed) => loaded.set({ installation: changed })}
                  onRotated={loaded.reload}
                />
              )}
            </WithUnsavedBar>
          ) : (
            <Empty icon="search" title="Website not found">
              <a class="button" href={pathOf({ view: 'installations' })}>
                All websites
              </a>
            </Empty>
          )
        }
      </WhenLoaded>
    </Page>
  )
}

/** Shows a bar while forms have unsaved changes, and asks before the operator leaves. */
function WithUnsavedBar({ children }: { children: (revision: number) => ComponentChildren }) {
  const { router, announcer } = useConsole()
  const [revision, setRevision] = useState(0)
  const isChanged = changedForms.value.length > 0
  const wanted = router.held.value
  useEffect(() => {
    if (!isChanged) return
    announcer.say('There are unsaved changes.')
    return router.hold()
  }, [isChanged])

  return (
    <>
      {children(revision)}
      {isChanged && (
        <section class="unsaved" aria-label="Unsaved changes">
          <span>Unsaved changes</span>
          <Button kind="small" onClick={() => setRevision(revision + 1)} text="Discard" />
          <Button
            kind="small primary"
            onClick={() => {
              for (const form of changedForms.peek()) form.requestSubmit()
            }}
            text="Save changes"
          />
        </section>
      )}
      {wanted !== undefined && (
        <ActionDialog
          title="Leave without saving?"
          action="Leave"
          danger
          onClose={router.stay}
          onConfirm={async () => router.leave(wanted)}
        >
          <p>Your changes on this page are not saved.</p>
        </ActionDialog>
      )}
    </>
  )
}
