// The frame of every page: the navigation, the tenant, the theme, the sign-out.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useMemo } from 'preact/hooks'
import type { Tenant } from '../sdk/src/types.ts'
import { followJournal } from './api/journal.ts'
import { type Loaded, useGet } from './api/load.ts'
import { Announced, useCounts } from './counts.tsx'
import { Banner } from './freeze/banner.tsx'
import { Stop } from './freeze/stop.tsx'
import { pages } from './pages.ts'
import { address, match, to } from './router.ts'
import { SignOut } from './sign-out.tsx'
import { TestClockBadge } from './test-clock.tsx'
import { shown } from './text/words.ts'
import { Badge, Button, DocsLink, toggle } from './ui/basics.tsx'
import { choose, theme } from './ui/theme.ts'
import { theme_titles, themes } from './ui/theme-choice.ts'

export function Shell({ children }: { children: ComponentChildren }) {
  useFollowed()
  const loaded = useGet<Tenant>('/v1/tenants/me', {}, { on: ['dlq', 'tenant'] })
  const tenant = loaded.value
  const menu_open = useSignal(false)
  useEffect(() => {
    menu_open.value = false
  }, [address.value.path])
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side" data-open={menu_open.value}>
        <div class="side-head bar">
          <p class="brand">Waystation</p>
          <span class="menu-button">
            <Button text="Menu" kind="quiet" expanded={menu_open.value} onClick={toggle(menu_open)} />
          </span>
        </div>
        <div class="side-body">
          <p class="tenant bar">
            <span class="tenant-name">{tenant ? shown(tenant.name) : '\u00a0'}</span>
            {tenant && <Badge tone="neutral">{tenant.plan}</Badge>}
          </p>
          <TestClockBadge />
          <Navigation {...{ loaded }} />
          <div class="side-foot">
            {tenant && (
              <Stop
                {...{ tenant }}
                onChange={() => {
                  menu_open.value = false
                  loaded.reload()
                }}
              />
            )}
            <ThemeSwitch />
            <DocsLink kind="quiet">Docs</DocsLink>
            <SignOut />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Banner {...{ loaded }} />
        {children}
      </main>
    </div>
  )
}

/** Before any effect of what is shown inside, which waits for it. */
function useFollowed() {
  const following = useMemo(() => {
    const controller = new AbortController()
    followJournal(controller.signal)
    return controller
  }, [])
  useEffect(() => () => following.abort(), [])
}

function Navigation({ loaded }: { loaded: Loaded<Tenant> }) {
  const { counts, ready } = useCounts(loaded)
  const id = useId()
  return (
    <nav aria-label="Pages">
      <ul>
        {pages.map(({ title, pattern }) => {
          const waiting = counts[title]
          return (
            <li key={pattern} class="page-entry">
              <a
                href={to(pattern.replace(/\/:.*/, ''))}
                aria-current={match(pattern, address.value.path) ? 'page' : undefined}
                aria-describedby={waiting && `${id}-${title}`.replace(' ', '-')}
              >
                {title}
              </a>
              {waiting && (
                <span class="waiting digits" id={`${id}-${title}`.replace(' ', '-')}>
                  <span aria-hidden="true">{waiting.text}</span>
                  <span class="offscreen">{waiting.words}</span>
                </span>
              )}
            </li>
          )
        })}
      </ul>
      <Announced {...{ counts, ready }} />
    </nav>
  )
}

function ThemeSwitch() {
  return (
    <fieldset class="themes">
      <legend class="offscreen">Theme</legend>
      {themes.map((name) => (
        <button key={name} type="button" aria-pressed={theme.value === name} onClick={() => choose(name)}>
          {theme_titles[name]}
        </button>
      ))}
    </fieldset>
  )
}
