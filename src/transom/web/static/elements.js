// Built from js/src by `make js`.
var H=[100,200,500,1e3,2e3],at=900,ht=900,lt=8e3,dt=500,ct=96*1024*1024,K=4001,ut=[4401,4403],ft=4410,g="-",k=class{#t;#n;#e;#s=null;#r=null;#o=0;#i=0;#h=0;#a=[];#l=0;#d=new Map;#p=0;#c=0;#u=0;#w=!1;#f=0;#g=!1;constructor({url:t,token:e,on:s}){this.#t=t,this.#n=e,this.#e=s,this.#b()}send(t,e){if(this.#w)return;this.#o+=1;let s=`${this.#o} ${t}
${e}`;this.#a.push([this.#o,s,t]);let o=(this.#d.get(t)??0)+s.length;this.#d.set(t,o),this.#m&&this.#s.send(s),o>ct&&t!==g&&(this.#y(t),this.#e.flood(t))}get#m(){return this.#s?.ready&&this.#s.readyState===WebSocket.OPEN}#y(t){for(let e of this.#a)e[2]===t&&(e[1]=`${e[0]} ${g}
{}`);this.#d.delete(t)}leave(){this.#s?.close(K,"leaving")}drop(){this.#s?.close()}giveUp(t){if(this.#w)return;clearTimeout(this.#c),this.#c=0;let e=this.#s;this.#s=null,e?.close(K,"leaving"),this.#T(t)}hurry(){this.#c?(clearTimeout(this.#c),this.#b()):this.#g||this.#k()}#b(){this.#c=0;let t=new WebSocket(this.#t);this.#s=t,t.ready=!1,t.onopen=()=>{let e={token:this.#n,page:this.#r,received:this.#i};t.send(JSON.stringify(e))},t.onmessage=({data:e})=>{this.#s===t&&(this.#v(),t.ready?this.#O(e):this.#$(t,JSON.parse(e)))},t.onclose=({code:e,reason:s})=>{this.#s===t&&(this.#s=null,clearTimeout(this.#f),ut.includes(e)?this.#T("unknown"):e===ft?this.#T(s):this.#w||this.#M())}}#v(){this.#g&&this.#e.state("connected"),this.#g=!1,this.#x(at,()=>this.#k())}#k(){this.#s?.ready&&(this.#A(),this.#x(ht,()=>this.#E()))}#E(){this.#g=!0,this.#e.state("reconnecting"),this.#x(lt,()=>{let t=this.#s;this.#s=null,t?.close(),this.#M()})}#x(t,e){let s=performance.now()+t;clearTimeout(this.#f),this.#f=setTimeout(()=>{document.hidden?this.#x(t,e):performance.now()>s+dt?this.#k():e()},t)}#M(){this.#g=!1,this.#e.state("reconnecting");let t=H[Math.min(this.#u,H.length-1)];this.#u+=1,this.#c=setTimeout(()=>this.#b(),t)}#$(t,{page:e,received:s,resumed:o}){this.#r!==null&&!o&&(this.#o=this.#i=this.#h=0,this.#a=[],this.#l=0,this.#d.clear(),this.#e.fresh()),this.#u=0,this.#r=e,t.ready=!0,this.#S(s);for(let[,r]of this.#a.slice(this.#l))t.send(r);this.#e.state("connected")}#O(t){let e=t.indexOf(`
`);if(e<0){this.#S(Number(t));return}let s=t.indexOf(" ");Number(t.slice(0,s))===this.#i+1&&(this.#i+=1,this.#L(),this.#e.frame(t.slice(s+1,e),t.slice(e+1)))}#S(t){for(;this.#a[this.#l]?.[0]<=t;){let[,e,s]=this.#a[this.#l];this.#l+=1;let o=(this.#d.get(s)??0)-e.length;o>0?this.#d.set(s,o):this.#d.delete(s)}this.#l*2>=this.#a.length&&(this.#a.splice(0,this.#l),this.#l=0)}#L(){this.#i-this.#h>=32||document.hidden?this.#A():this.#p||=setTimeout(()=>this.#A(),50)}#A(){clearTimeout(this.#p),this.#p=0,this.#h=this.#i,this.#m&&this.#s.send(String(this.#i))}#T(t){this.#w=!0,clearTimeout(this.#f),clearTimeout(this.#p),this.#e.state("over",t)}};var D=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

:host {
  --ground: var(--transom-ground, light-dark(#f3f4f6, #121418));
  --card: var(--transom-card, light-dark(#ffffff, #1b1e24));
  --strip: var(--transom-strip, light-dark(#fafbfc, #20242b));
  --line: var(--transom-line, light-dark(#d9dde4, #333a45));
  --text: var(--transom-text, light-dark(#1a1e26, #e7eaf0));
  --quiet: var(--transom-quiet, light-dark(#5a6371, #9aa4b3));
  --accent: var(--transom-accent, light-dark(#2152d0, #86a8ff));
  --on-accent: var(--transom-on-accent, light-dark(#ffffff, #0c1424));
  --danger: var(--transom-danger, light-dark(#b3261e, #ff9b92));
  --busy: var(--transom-busy, light-dark(#a15c00, #f0b45a));
  --shadow: var(--transom-shadow, 0 10px 36px rgb(0 0 0 / 28%));
  --round: var(--transom-round, 12px);
  --layer: var(--transom-layer, 10);
  display: block;
  color: var(--text);
  font: var(--transom-font, 15px/1.45 system-ui, sans-serif);
}

:host([hidden]) { display: none !important; }
* { box-sizing: border-box; }

button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid transparent;
  border-radius: 8px;
  cursor: pointer;
}

button:disabled { cursor: default; opacity: 0.55; }
button:hover:not(:disabled) { border-color: var(--line); background: var(--card); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }

/* --- Views --- */

:host([data-state]) {
  flex: none;
  scroll-margin: 4rem 0 1rem;
  overflow: hidden;
  border: 1px solid var(--line);
  border-radius: var(--round);
  background: var(--card);
}

/* A View that wants no border of its own still has its boundary: who it is from stays in sight. */
:host([data-border="none"][data-mode="inline"]) { border-color: transparent; background: none; }
:host([data-border="none"][data-mode="inline"]) .caption {
  border: 1px solid var(--line);
  border-radius: var(--round);
}

.caption {
  position: relative;
  display: flex;
  align-items: center;
  gap: 0.6rem;
  min-height: 2.5rem;
  padding: 0.2rem 0.35rem 0.2rem 0.9rem;
  border-bottom: 1px solid var(--line);
  background: var(--strip);
  font-size: 0.875rem;
}

:host([data-state="loading"]) .caption::after {
  content: "";
  position: absolute;
  inset: auto 0 -1px 0;
  height: 2px;
  background: linear-gradient(90deg, transparent, var(--accent), transparent) no-repeat -40% 0 / 40% 100%;
  animation: loading 1.1s linear infinite;
}

@keyframes loading { to { background-position: 140% 0; } }

/* Whose it is comes first and is never cut off; what a View says of itself gets what room is left. */
.whose { flex: 0 1 auto; overflow-wrap: anywhere; }
.whose b { font-weight: 600; unicode-bidi: isolate; }

.caption .own {
  flex: 1 1 0;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  unicode-bidi: isolate;
  color: var(--quiet);
  font-size: 0.8125rem;
  font-style: italic;
}

.caption .busy { flex: none; color: var(--busy); font-variant-numeric: tabular-nums; }
.caption .starting { animation: appear 0.3s 2s both; }
:host(:not([data-state="loading"])) .starting { display: none; }
@keyframes appear { from { opacity: 0; } }

.caption .buttons { display: flex; flex: none; gap: 0.1rem; }
.caption button { display: grid; place-items: center; width: 2rem; height: 2rem; padding: 0; color: var(--quiet); }
.caption button:hover { color: var(--text); }
.caption button[aria-pressed="true"] { color: var(--accent); }
.caption svg { width: 1.05rem; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; }

.trouble { display: flex; align-items: center; flex-wrap: wrap; gap: 0.5rem; padding: 0.6rem 0.9rem; }
.trouble p { flex: 1 1 14rem; margin: 0; color: var(--quiet); overflow-wrap: anywhere; unicode-bidi: plaintext; }
.trouble button { padding: 0.3rem 0.9rem; border-color: var(--line); }
:host([data-trouble]) .trouble { border-bottom: 1px solid var(--line); border-left: 4px solid var(--busy); }
:host([data-trouble]) iframe { opacity: 0.4; filter: grayscale(1); }
:host([data-state="failed"]) { border-left: 4px solid var(--danger); }

:host([data-state="closed"]) { display: flex; flex-wrap: wrap; align-items: center; border-style: dashed; background: none; }
:host([data-state="closed"]) .caption { flex: 1 1 20rem; min-width: 0; border: 0; background: none; color: var(--quiet); }
:host([data-state="closed"]) .trouble { flex: 0 1 auto; padding: 0.3rem 0.5rem 0.3rem 0.9rem; font-size: 0.8125rem; }
:host([data-state="closed"]) .trouble p { flex: 0 1 auto; }
:host([data-held]) .trouble button { pointer-events: none; }
.about { font: 0.8125rem ui-monospace, monospace; unicode-bidi: isolate; }

.pin { flex: none; display: grid; place-items: center; color: var(--accent); }
[hidden] { display: none !important; }

.grants { padding: 0.5rem 0.9rem; border-bottom: 1px solid var(--line); background: var(--strip); font-size: 0.875rem; }
.grants p { margin: 0; color: var(--quiet); }
.grants ul { margin: 0; padding: 0; max-height: 12rem; overflow-y: auto; list-style: none; }
.grants li { display: flex; align-items: center; gap: 0.6rem; padding: 0.2rem 0; overflow-wrap: anywhere; }
.grants li span { flex: 1; }
.grants button { flex: none; padding: 0.2rem 0.8rem; border-color: var(--line); }
:host([data-state="noted"]) { border-style: dashed; font-size: 0.875rem; }

iframe { display: block; width: 100%; height: 360px; border: 0; background: transparent; }
iframe:focus-visible { outline-offset: -2px; }
:host([data-held]) iframe { pointer-events: none; }
:host([data-lost]) iframe { opacity: 0.4; filter: grayscale(1); transition: opacity 0.2s; }
:host([data-question]) { outline: 3px solid var(--accent); outline-offset: 1px; }
:host([data-question][data-mode="fullscreen"]) { outline-offset: -3px; }

:host([data-mode="fullscreen"]) {
  position: fixed;
  inset: 0;
  z-index: var(--layer);
  display: flex;
  flex-direction: column;
  margin: 0;
  border: 0;
  border-radius: 0;
}

:host([data-mode="fullscreen"]) iframe { flex: 1; height: auto !important; }

:host([data-mode="pip"]) {
  position: fixed;
  right: 16px;
  bottom: 16px;
  z-index: calc(var(--layer) - 1);
  width: min(380px, calc(100vw - 32px));
  margin: 0;
  box-shadow: var(--shadow);
}

:host([data-mode="pip"]) iframe { height: min(240px, 50vh) !important; }
:host([data-mode="pip"]) .caption { flex-wrap: wrap; row-gap: 0; }
:host([data-mode="pip"]) .whose { flex: 1 1 0; }
:host([data-mode="pip"]) .own { flex-basis: 100%; order: 1; }

/* --- questions --- */

.questions {
  position: fixed;
  inset: auto 0 0 0;
  z-index: calc(var(--layer) + 10);
  display: flex;
  flex-direction: column;
  align-items: center;
  gap: 0.75rem;
  max-height: 100vh;
  padding: 1rem;
  overflow-y: auto;
  pointer-events: none;
}

.questions:empty { display: none; }

.question {
  pointer-events: auto;
  flex: none;
  width: min(100%, 620px);
  padding: 1rem 1.1rem;
  border: 1px solid var(--accent);
  border-radius: var(--round);
  background: var(--card);
  box-shadow: var(--shadow);
}

.question:focus { outline: none; }
.question .asker { display: flex; gap: 0.6rem; font-size: 0.875rem; }
.question .more { flex: none; width: 5.5rem; margin-left: auto; color: var(--quiet); text-align: right; }
.question h2 { margin: 0.35rem 0 0.6rem; font-size: 1.0625rem; overflow-wrap: anywhere; }
.question p { margin: 0 0 0.35rem; color: var(--quiet); font-size: 0.875rem; overflow-wrap: anywhere; }

.question code,
.grants code {
  padding: 0.1em 0.35em;
  border-radius: 5px;
  background: var(--ground);
  font: 0.9375em ui-monospace, monospace;
  unicode-bidi: isolate;
}

.question pre,
.question blockquote {
  margin: 0 0 0.8rem;
  overflow: auto;
  padding: 0.6rem 0.7rem;
  border-radius: 8px;
  background: var(--ground);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
  unicode-bidi: plaintext;
}

.question pre { max-height: min(11rem, 28vh); font: 0.8125rem/1.5 ui-monospace, monospace; }

.question blockquote {
  max-height: min(6rem, 16vh);
  border-left: 3px solid var(--line);
  font-size: 0.875rem;
  font-style: italic;
}

/* A press on a button that cannot be pressed yet is a press on the card: it begins nothing. */
.question button[aria-disabled="true"] { opacity: 0.55; pointer-events: none; }
.question .buttons { display: flex; margin-top: 0.8rem; flex-wrap: wrap; justify-content: flex-end; gap: 0.5rem; }
.question .buttons button { border-color: var(--line); padding: 0.4rem 1rem; white-space: nowrap; }
.question .buttons .main { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
.question .buttons .main:hover:not(:disabled) { filter: brightness(1.08); }

@media (max-width: 560px) {
  .caption { flex-wrap: wrap; row-gap: 0; }
  .caption .whose { flex: 1 1 0; }
  .caption .own { flex-basis: 100%; order: 1; }
  :host([data-state="closed"]) .trouble { flex: 1 1 100%; padding-top: 0; }
  :host([data-state="closed"]) .trouble p { flex: 1 1 100%; }
  .question .buttons button { flex: 1; }
}

@media (prefers-reduced-motion: reduce) {
  :host([data-state="loading"]) .caption::after { animation: none; background-size: 100% 100%; }
}
`;var x="ui/notifications/sandbox-",mt=["inline","fullscreen","pip"],wt="allow-scripts allow-same-origin allow-forms",E=16*1024*1024,P=6e3,gt=10,bt=100,Y="/transom-view",vt=12e3,yt=1e3,kt=1e3,xt=500,Et=500,At=8,Tt={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"},X=new CSSStyleSheet;X.replaceSync(D);function C(i){let t=i.attachShadow({mode:"open"});return t.adoptedStyleSheets=[X],t}function n(i,{text:t,...e}={},...s){let o=document.createElement(i);for(let[r,a]of Object.entries(e))o.setAttribute(r,a);return t!==void 0&&(o.textContent=t),o.append(...s),o}function G(i){let t=document.createElementNS("http://www.w3.org/2000/svg","svg");t.setAttribute("viewBox","0 0 20 20"),t.setAttribute("aria-hidden","true");let e=document.createElementNS("http://www.w3.org/2000/svg","path");return e.setAttribute("d",Tt[i]),t.append(e),t}function R({view:i,shown:t=i,server:e,client:s}){let o=[n("b",{text:t})," from ",n("b",{text:e})];return s&&o.push(" for ",n("b",{text:s})),n("span",{class:"whose",part:"whose"},...o)}function Mt(i){let{paddingLeft:t,paddingRight:e}=getComputedStyle(i),s=i.clientWidth-parseFloat(t)-parseFloat(e)-2;return{width:Math.max(0,Math.floor(s)),maxHeight:P}}var St=i=>i.length*3>E&&(i.length>E||new Blob([i]).size>E),A=class extends HTMLElement{#t=C(this);#n;#e;#s=0;#r=0;#o=null;#i=null;#h=0;#a=!1;#l=null;#d=null;#p=0;#c=0;#u={};start(t,e){let{view:s,origin:o,number:r,allow:a,border:h}=t,l=this.#w(t,e,"loading"),{shown:c}=this;this.origin=o,this.#n=t,this.#s=this.#r=this.#p=0,this.toggleAttribute("data-trouble",!1),h||(this.dataset.border="none"),this.own=n("span",{class:"own"},n("span",{class:"starting",text:"starting…"}));let y={class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"};this.#l=n("span",y,G("pin")),this.#i=n("span",{class:"busy",part:"busy",role:"timer",hidden:""}),this.#a=!1;let nt=n("span",{class:"buttons"},this.#m("key","What is always allowed",()=>this.#y()),this.#m("fullscreen","Full screen",()=>this.toggle("fullscreen")),this.#m("pip","Picture in the corner",()=>this.toggle("pip")),this.#m("close","Close",()=>this.close())),rt=`View ${c}`,B=`${o}${Y}?${r}`;this.frame=n("iframe",{sandbox:wt,title:rt,src:B,part:"frame"}),a&&this.frame.setAttribute("allow",a),this.frame.addEventListener("load",({target:w})=>{this.#s>0||(w.style.visibility="hidden",setTimeout(()=>{w===this.frame&&this.#s===0&&(w.src=B)},yt))}),this.#t.append(U(l,this.#l,this.#i,this.own,nt),this.frame),this.setMarks({pinned:!1,grants:[]}),this.#c=setTimeout(()=>{let w=`${o} did not load in the browser`;this.#e.notify({do:"broken",view:s,reason:w,value:!0})},vt)}#w(t,e,s){let{view:o,shown:r=o}=t;this.#e=e,this.view=o,this.shown=r,this.id||=`view-${e.mark}${o}`,this.dataset.mode="inline",this.#f(s),this.setAttribute("role","region");let a=R(t);return this.setAttribute("aria-label",`View ${a.textContent}`),a}#f(t){clearTimeout(this.#c),clearInterval(this.#h),this.frame=void 0,this.hidden=!1,this.dataset.state=t,this.#t.replaceChildren()}showGone(t,e){let{view:s,failed:o,reason:r,about:a}=t,h=this.#w(t,e,o?"failed":"closed");a&&h.append(" ",n("span",{class:"about",text:a}));let l=j(o?`It could not be shown: ${r}`:r),c={[o?"Try again":"Reopen"]:()=>e.notify({do:"retry",view:s}),[o?"Close":"Dismiss"]:()=>e.notify({do:"closed",view:s})};this.#t.append(U(h),L(this.shown,l,c,o?"alert":"group")),o&&this.#g("failed",r)}#g(t,e){let s={view:this.view,kind:t,message:e};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:s}))}note(t,e={}){this.#f("noted"),this.toggleAttribute("data-held",!1);let s=this.getAttribute("view")??this.shown;this.#t.append(L(s,t,e))}#m(t,e,s){let o={type:"button",title:e,"aria-label":`${e}: ${this.shown}`},r=n("button",o,G(t));return r.addEventListener("click",s),this.#u[t]=r,r}disconnectedCallback(){clearTimeout(this.#c),clearInterval(this.#h)}get window(){return this.frame?.contentWindow}name({name:t,version:e}){let{uri:s}=this.#n,o=`calls itself “${t}” ${e}`.trimEnd();this.own.textContent=`${t?`${o} · `:""}${s}`,this.own.title=this.own.textContent}setMarks({pinned:t,grants:e}){if(!this.frame)return;this.#l.hidden=!t,this.#u.key.hidden=e.length===0;let s=this.#d?.isConnected&&e.length>0;this.#d?.remove(),this.#d=$t(this.shown,e,({tool:o,by:r})=>this.#e.notify({do:"withdraw",view:this.view,tool:o,by:r})),s?this.#y():this.#u.key.setAttribute("aria-expanded","false")}#y(){let t=!this.#d.isConnected;t?this.#t.querySelector(".caption").after(this.#d):this.#d.remove(),this.#u.key.setAttribute("aria-expanded",String(t)),this.#e.hold(this)}toggle(t){this.setMode(this.dataset.mode===t?"inline":t)}setMode(t){if(mt.includes(t)){t!=="inline"&&this.#e.makeRoom(this,t),this.dataset.mode!==t&&this.#e.hold(this),this.dataset.mode=t;for(let e of["fullscreen","pip"])this.#u[e].setAttribute("aria-pressed",String(t===e));this.#e.rearrange(),this.sendMode()}}sendMode(){let{clientWidth:t,clientHeight:e}=this.frame,s=this.dataset.mode,o=s==="inline"?Mt(this.#e.place):{width:t,height:e};this.#e.notify({do:"mode",view:this.view,mode:s,size:o})}close(){this.hidden=!0,this.#e.rearrange(),this.#e.notify({do:"closed",view:this.view})}resize(t){let e=Math.min(Math.ceil(Number(t?.height)),P);e>0&&(this.frame.style.height=`${e}px`,!(Math.abs(e-this.#p)<At)&&(this.#p=e,this.#e.hold(this)))}post(t){this.window?.postMessage(t,this.origin),this.look()}look(){let{frame:t,window:e}=this;e&&(e.length>0?this.#a=!0:this.#a&&(this.#a=!1,setTimeout(()=>{this.frame!==t||e.length>0||this.#v({do:"vanished",reason:"its page crashed or was unloaded"})},xt)))}receive(t){let e=t?.method;if(typeof e=="string"){if(e.startsWith(x)){e===`${x}proxy-ready`?this.#E():e===`${x}view-gone`&&this.#v({do:"vanished",reason:"its page shows something else now"});return}e==="ui/notifications/size-changed"?this.resize(t.params):e==="ui/notifications/initialized"&&(this.dataset.state="live")}let s;try{s=JSON.stringify(t)}catch{s=void 0}s===void 0?this.#b(t,"is not JSON"):St(s)?this.#b(t,`is larger than ${E} bytes`):this.#e.send(this.view,s)}#b(t,e){let{id:s}=t??{};if(this.#v({do:"refused",reason:`A message ${e}`}),t?.method===void 0&&(typeof s=="number"||typeof s=="string")){let o={code:-32603,message:`The View's answer ${e}: it was not passed on`};this.#e.send(this.view,JSON.stringify({jsonrpc:"2.0",id:s,error:o}))}}#v(t){this.#r+=1,this.#r<=bt&&this.#e.notify({view:this.view,...t})}setTrouble({reason:t,busyFor:e}){if(!this.frame||(this.#k(e),this.#o?.remove(),this.toggleAttribute("data-trouble",!!t),!t))return;let{view:s,shown:o}=this;this.#o=L(o,`It does not respond: ${j(t)}`,{Reload:()=>this.#e.notify({do:"reload",view:s}),Close:()=>this.close()}),this.frame.before(this.#o),this.#e.hold(this),this.#g("unresponsive",t)}#k(t){if(clearInterval(this.#h),this.#i.hidden=t===null,t===null)return;let e=performance.now()-t*1e3,s=()=>{this.#i.textContent=`busy for ${Math.round((performance.now()-e)/1e3)} s`};s(),this.#h=setInterval(s,1e3)}#E(){if(clearTimeout(this.#c),this.frame.style.visibility="",this.#s+=1,this.#s>gt){this.#e.notify({do:"broken",view:this.view,reason:"it keeps reloading itself"});return}let{html:t,allow:e}=this.#n;this.post({jsonrpc:"2.0",method:`${x}resource-ready`,params:{html:t,allow:e}})}},U=(...i)=>n("div",{class:"caption",part:"caption"},...i),j=i=>i.replace(/\.?$/,".");function L(i,t,e,s="alert"){let o=Object.entries(e).map(([a,h])=>{let l=n("button",{type:"button",text:a,"aria-label":`${a}: ${i}`});return l.addEventListener("click",()=>{for(let c of o)c.disabled=!0;h()}),l});return n("div",{class:"trouble",part:"note",role:s},n("p",{text:t}),...o)}function $t(i,t,e){let s=t.map(r=>{let a=r.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${r.shown}: ${i}`,l=n("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,e(r)});let c=n("span",{},a,n("code",{text:r.shown}));return n("li",{},c,l)}),o={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`};return n("div",o,n("p",{text:"You are not asked before"}),n("ul",{},...s))}var q=(i,t)=>`${i.number} ${t}`,T=class{#t=new Map;#n=new Map;#e=0;#s;constructor(t){this.#s=t,window.addEventListener("message",({source:e,origin:s,data:o})=>{let r=this.#n.get(e);r?.origin===s&&r.receive(o)}),setInterval(()=>{for(let e of this.#t.values())e.look()},kt)}get(t,e){return this.#t.get(q(t,e))}mount(t,e){let s=this.#r(t,e.view);s.start(e,this.#i(t,s)),this.#n.set(s.window,s),this.#o(s),s.placed&&s.sendMode()}showGone(t,e){let s=this.#r(t,e.view);s.showGone(e,this.#i(t,s)),e.failed?this.#o(s):this.#h()}clearStorage(t){for(let e of t){let s=n("iframe",{src:`${e}${Y}`,sandbox:"",hidden:""});s.addEventListener("load",()=>s.remove()),document.body.append(s)}}#r(t,e){this.drop(t,e);let s=this.#s(e);return s.agent=t,this.#t.set(q(t,e),s),s}#o(t){this.#h(),t.placed||t.scrollIntoView({block:"nearest"})}#i(t,e){return{place:e.placed?e:e.parentElement,mark:t.number?`${t.number}:`:"",notify:t.notify,send:t.send,makeRoom:this.#a,rearrange:this.#l,hold:this.#h}}drop(t,e){let s=this.get(t,e);s&&(this.#t.delete(q(t,e)),this.#n.delete(s.window),s.placed?s.note(""):s.remove(),this.#h(),this.#l())}clear(t){for(let e of[...this.#t.values()])e.agent===t&&this.drop(t,e.view)}pointAt(t,e){let s=t&&this.get(t,e);for(let o of this.#t.values())o.toggleAttribute("data-question",o===s);if(s?.frame)return this.#h(),s.scrollIntoView({block:"nearest"}),s.frame}#h=t=>{let e=s=>{for(let o of this.#t.values())o.toggleAttribute("data-held",s&&o!==t)};e(!0),clearTimeout(this.#e),this.#e=setTimeout(e,Et,!1)};reached(t,e){for(let s of this.#t.values())s.agent===t&&s.toggleAttribute("data-lost",!e)}resized(){for(let t of this.#t.values())t.frame&&(t.placed||t.dataset.mode!=="inline")&&t.sendMode()}get fullscreen(){return[...this.#t.values()].find(t=>t.dataset.mode==="fullscreen"&&!t.hidden)}#a=(t,e)=>{for(let s of this.#t.values())s!==t&&s.dataset.mode===e&&s.setMode("inline")};#l=()=>{let t=this.fullscreen;document.body.toggleAttribute("data-covered",t!==void 0);for(let e of this.#t.values())e.inert=t!==void 0&&e!==t}};var M=class{#t;#n;#e;state="connecting";constructor(t,{url:e,token:s},o){this.number=t,this.#t=o.views,this.#n=o.questions,this.#e=o,this.link=new k({url:e,token:s,on:this.#i})}notify=t=>this.link.send(g,JSON.stringify(t));send=(t,e)=>this.link.send(t,e);#s={mount:t=>this.#t.mount(this,t),unmount:({view:t})=>this.#t.drop(this,t),trouble:t=>this.#t.get(this,t.view)?.setTrouble(t),gone:t=>this.#t.showGone(this,t),marks:t=>this.#t.get(this,t.view)?.setMarks(t),clear:({origins:t})=>this.#t.clearStorage(t),named:t=>this.#t.get(this,t.view)?.name(t),mode:({view:t,mode:e})=>this.#t.get(this,t)?.setMode(e),ask:t=>this.#n.ask(this,t,e=>this.#r(t,e)),unask:({id:t})=>this.#n.withdraw(this,t),download:({name:t,mime:e,data:s})=>Ot(t,e,s)};#r({id:t,kind:e,url:s},o){this.notify({do:"answer",id:t,value:o}),e==="link"&&o&&window.open(s,"_blank","noopener,noreferrer")}#o(){this.#t.clear(this),this.#n.clear(this)}#i={frame:(t,e)=>{let s=JSON.parse(e);t===g?(this.#s[s.do]??this.#e.onMessage)(s):this.#t.get(this,t)?.post(s)},state:(t,e)=>{this.state=t,t==="over"?this.#o():this.#t.reached(this,t==="connected"),this.#e.onState(this,e)},fresh:()=>{this.#o(),this.#e.onFresh?.()},flood:t=>{this.#t.drop(this,t),this.notify({do:"broken",view:t,reason:"it sends more than the host takes"})}}};function Ot(i,t,e){let s=Uint8Array.from(atob(e),r=>r.charCodeAt(0)),o=URL.createObjectURL(new Blob([s],{type:t}));n("a",{href:o,download:i}).click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var J=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var Q=500,Lt=1500,qt=100,Z=2e4,Ct=i=>i.length<=Z?i:`${i.slice(0,Z)}
… (${i.length} characters)`,Rt=i=>{let t=["bytes","KB","MB"],e=0;for(;i>=1024&&e<2;e+=1)i/=1024;return`${e?i.toFixed(1):i} ${t[e]}`},u=i=>n("p",{text:i}),I=i=>n("pre",{text:Ct(i),tabindex:"0"}),tt={approve:{title:({tool:i,by:t,opens:e})=>[e?"Let ":t==="view"?"Let the View call its server's ":"Let the model call ",n("code",{text:i}),e?" open a View?":"?"],body:i=>[...Nt(i),...It(i),...Vt(i)],answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]},link:{title:({url:i})=>[i.startsWith("mailto:")?"Write this mail?":`Open ${et(i).host}?`],body:({url:i})=>[u("The View wants to open:"),I(et(i).href)],answers:[["Open",!0],["Refuse",!1]]},download:{title:({files:i})=>[i.length===1?"Save this file?":`Save ${i.length} files?`],body:({files:i})=>[u("The View wants to save:"),I(i.map(t=>`${t.name}  (${Rt(t.bytes)})`).join(`
`))],answers:[["Save",!0],["Refuse",!1]]},pin:{title:()=>["Keep this View open?"],body:({reason:i})=>[u("It would not be closed to make room for others, until you close it."),...i?[u("The View says why:"),n("blockquote",{text:i})]:[]],answers:[["Keep open",!0],["Refuse",!1]]},withdrawn:{title:()=>["That question was withdrawn"],body:()=>[u("Whoever asked does not need an answer any more.")],answers:[["Next question",null]]}},N={asker:null,question:{kind:"withdrawn"},onAnswer(){}};function et(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Nt({description:i,opens:t}){return i?[u(`The ${t?"server":"View"} says what it does:`),n("blockquote",{text:i})]:[]}function It({arguments:i}){return Object.keys(i).length===0?[u("It is called without arguments.")]:[u("It is called with:"),I(JSON.stringify(i,null,2))]}function Vt({changed:i,granted:t=[]}){let e=[];return i&&e.push("You always allowed this tool. It has changed since, so you are asked again."),t.length&&e.push(`You always allow this View: ${t.join(", ")}.`),e.map(u)}function zt(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var S=class{#t;#n=n("div",{class:"questions","aria-live":"polite"});#e;#s;#r=[];#o=null;#i=null;#h=[];#a=null;#l=Q;#d=0;#p=0;#c=!1;constructor(t,e,s=()=>{}){this.#t=t,this.#e=e,this.#s=s,C(t).append(this.#n),addEventListener("pointerdown",()=>this.#y(),!0),addEventListener("keydown",({key:o})=>["Enter"," "].includes(o)&&this.#y(),!0),addEventListener("resize",()=>this.#b())}ask(t,e,s){tt[e.kind]&&(this.#r.push({asker:t,question:e,onAnswer:s}),this.#o?this.#m():this.#f(this.#r.shift()))}withdraw(t,e){this.#u(s=>s.asker===t&&s.question.id===e)}clear(t){this.#u(e=>e.asker===t)}#u(t){this.#r=this.#r.filter(s=>!t(s));let e=this.#r.length>0;this.#o&&t(this.#o)?this.#f(e?N:null):this.#o===N&&!e?this.#f(null):this.#m()}#w(t){let{onAnswer:e}=this.#o;this.#f(this.#r.shift()??null),e(t)}#f(t){let e=zt();this.#o=t,this.#i?.remove(),this.#i=t&&this.#g(t.question);let s=t?this.#e(t.asker,t.question):this.#e();clearInterval(this.#p),this.#i&&(this.#l=e instanceof HTMLIFrameElement?Lt:Q,this.#p=setInterval(()=>this.#v(),qt),this.#n.append(this.#i),(t.question.kind!=="approve"&&e===s||!e||e===document.body)&&this.#i.focus(),this.#b()),this.#m()}#g(t){let{title:e,body:s,answers:o}=tt[t.kind],r=n("h2",{},...e(t));this.#a=n("span",{class:"more"}),this.#h=o.map(([h,l],c)=>{let y=n("button",{type:"button",text:h,class:c?"":"main"});return y.addEventListener("click",()=>this.#c&&this.#w(l)),y});let a=n("section",{class:"question",part:"question",role:"alertdialog","aria-label":r.textContent,tabindex:"-1"},n("div",{class:"asker"},t.server?R(t):"",this.#a),r,...s(t),n("div",{class:"buttons"},...this.#h));return a.addEventListener("keydown",h=>{h.key==="Escape"&&(h.stopPropagation(),this.#w(o.at(-1)[1]))}),a}#m(){let t=this.#r.length,e=t+(this.#o&&this.#o!==N?1:0);this.#i&&(this.#a.textContent=t?`and ${t} more`:""),this.#t.toggleAttribute("data-asking",!!this.#i),this.#s(e)}#y(){this.#c||this.#b()}#b(){this.#d=performance.now(),this.#v()}#v(){let t=performance.now();(document.hidden||!document.hasFocus())&&(this.#d=t),this.#c=t-this.#d>=this.#l;for(let e of this.#h)e.ariaDisabled=String(!this.#c)}};var ot=matchMedia("(prefers-color-scheme: dark)"),d=new Map,$=new Map,O=new Set;function b(i,t,e,s=!1){let o=new CustomEvent(t,{bubbles:!0,composed:!0,cancelable:s,detail:e});return(i??document).dispatchEvent(o),o.defaultPrevented}var m=(i,t)=>f.notify({do:"place",view:i,value:t}),z=class extends A{static observedAttributes=["view"];#t=null;get placed(){return!0}connectedCallback(){this.#n(this.getAttribute("view"))}disconnectedCallback(){super.disconnectedCallback(),this.#n(null)}attributeChangedCallback(t,e,s){this.isConnected&&this.#n(s)}#n(t){if(t!==this.#t&&(this.#t&&d.get(this.#t)===this&&(d.delete(this.#t),v.drop(f,this.#t),m(this.#t,"gone")),this.#t=t,!!t)){if(d.has(t)){this.note("This View is shown elsewhere on this page.");return}d.set(t,this),this.note("Opening…"),m(t,document.hidden?"free":"take")}}},_=class extends HTMLElement{connectedCallback(){O.add(this);for(let t of $.keys())this.place(t)}disconnectedCallback(){O.delete(this)}place(t){d.has(t)||this.append(n("transom-view",{view:t}))}},_t={offer({new:i,...t}){let{view:e}=t;$.set(e,t);let[s]=O;d.has(e)?m(e,"free"):i&&b(s,"opened",t),d.has(e)||s?.place(e)},elsewhere({view:i}){d.get(i)?.note("This View is open in another tab or window.",{"Show it here":()=>m(i,"again")})},absent({view:i,reason:t,again:e}){let s=d.get(i);$.delete(i),s?.note(`This View was closed: ${t}.`,e?{"Open again":()=>m(i,"again")}:{}),b(s,"closed",{view:i,reason:t}),O.has(s?.parentElement)&&s.remove()}},W=n("div",{id:"transom-questions"}),V=new S(W,(i,t)=>v.pointAt(f,t?.view)),p=new Map,Wt={ask(i,t,e){let{id:s,do:o,...r}=t,a=new AbortController,h=c=>p.delete(s)&&e(c);p.set(s,a);let l={...r,answer:h,withdrawn:a.signal};b(d.get(t.view),"approval",l,!0)||p.delete(s)&&(W.isConnected||document.body.append(W),V.ask(i,t,e))},withdraw(i,t){p.get(t)?.abort(),p.delete(t),V.withdraw(i,t)},clear(i){for(let t of[...p.keys()])this.withdraw(i,t);V.clear(i)}};function Ft(){let{colorScheme:i}=getComputedStyle(document.documentElement);return(i.includes("light")&&i.includes("dark")?ot.matches:i.includes("dark"))?"dark":"light"}var st="";function F(i){let t=Ft();(i||t!==st)&&f.notify(J({theme:t})),st=t}var it=i=>i==="unknown"?"You are not signed in, or this page may not show Views.":`${i}.`,v=new T(i=>d.get(i)??document.createElement("transom-view")),f=new M(0,{url:new URL("socket",import.meta.url).href.replace("http","ws"),token:""},{views:v,questions:Wt,onMessage:i=>_t[i.do]?.(i),onFresh(){$.clear();for(let i of d.keys())m(i,document.hidden?"free":"take")},onState({state:i},t){if(i==="connected")F(!0);else if(i==="reconnecting")b(document,"problem",{kind:"connection",message:"No connection. Trying again…"});else if(i==="over"){for(let e of d.values())e.note(it(t));b(document,"problem",{kind:"over",message:it(t)})}}});addEventListener("resize",()=>v.resized());addEventListener("keydown",({key:i})=>{i==="Escape"&&v.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>f.link.leave());addEventListener("pageshow",({persisted:i})=>i&&location.reload());addEventListener("online",()=>f.link.hurry());document.addEventListener("visibilitychange",()=>f.link.hurry());ot.addEventListener("change",()=>F());new MutationObserver(()=>F()).observe(document.documentElement,{attributes:!0});customElements.define("transom-view",z);customElements.define("transom-stage",_);
