// Around every page: where one can go, whose data it is, the theme, the way out.

import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Tenant } from '../sdk/src/types.ts'
import { useGet } from './load.ts'
import { pages } from './nav.ts'
import { address, match, to } from './router.ts'
import { signOut } from './session.ts'
import { shown } from './text.ts'
import { choose, theme, themes } from './theme.ts'
import { Badge, Button } from './ui/basics.tsx'
import { announce } from './ui/toast.tsx'

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  const tenant = useGet<Tenant>('/v1/tenants/me').value
  const menu_open = useSignal(false)
  const { path } = address.value
  useEffect(() => {
    menu_open.value = false
  }, [path])
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side" data-open={menu_open.value}>
        <div class="side-head">
          <p class="brand">Waystation</p>
          <span class="menu-button">
            <Button
              kind="quiet"
              expanded={menu_open.value}
              onClick={() => {
                menu_open.value = !menu_open.value
              }}
            >
              Menu
            </Button>
          </span>
        </div>
        <div class="side-body">
          <p class="tenant">
            <span class="tenant-name">{tenant ? shown(tenant.name) : '\u00a0'}</span>
            {tenant && <Badge tone="neutral">{tenant.plan}</Badge>}
          </p>
          <nav aria-label="Pages">
            <ul>
              {pages.map((page) => (
                <li key={page.path}>
                  <a href={to(page.path)} aria-current={match(page.pattern, path) ? 'page' : undefined}>
                    {page.title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <div class="side-foot">
            <ThemeSwitch />
            <Button
              kind="quiet"
              onClick={() => {
                signOut()
                announce('Signed out.')
              }}
            >
              Sign out
            </Button>
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

const theme_titles = { system: 'Auto', light: 'Light', dark: 'Dark' }

function ThemeSwitch(): JSX.Element {
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
