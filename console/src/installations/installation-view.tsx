import { backTo } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { WithUnsavedBar } from '../ui/form.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, WhenLoaded } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { TabContent } from './installation-tabs.tsx'

type Tab = 'install' | 'look' | 'hours' | 'forms' | 'privacy' | 'keys'

const tabs: [tab: Tab, label: string][] = [
  ['install', 'Install'],
  ['look', 'Look'],
  ['hours', 'Hours'],
  ['forms', 'Forms'],
  ['privacy', 'Privacy'],
  ['keys', 'Identity'],
]

/** The settings of a website, in tabs. */
export function InstallationView({ siteKey, tab = 'install' }: { siteKey: string; tab?: string }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => {
    const { installations } = await api.workspaces.listInstallations({})
    return { installation: installations.find(({ publicSiteKey }) => publicSiteKey === siteKey) }
  }, [siteKey])
  return (
    <Page
      title={loaded.value?.installation?.appearance?.title || 'Website'}
      back={backTo('installations')}
      lead={<span class="mono">{siteKey}</span>}
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
      <WhenLoaded loaded={loaded} name="website">
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
