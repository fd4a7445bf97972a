// Built from js/src by `make js`.
var W=[100,200,500,1e3,2e3],bt=900,vt=900,yt=8e3,kt=500,xt=96*1024*1024,B=4001,Tt=[4401,4403],Et=4410,f="-",p=class{#t;#a;#e;#s=null;#i=!1;#n=null;#o=0;#r=0;#d=0;#h=[];#l=0;#u=new Map;#f;#c;#w=0;#m=!1;#b;#p=!1;constructor({url:t,token:e,on:s}){this.#t=t,this.#a=e,this.#e=s,this.#g()}send(t,e){if(this.#m)return;this.#o+=1;let s=`${this.#o} ${t}
${e}`;this.#h.push([this.#o,s,t]);let n=(this.#u.get(t)??0)+s.length;this.#u.set(t,n),this.#v?.send(s),n>xt&&t!==f&&(this.#y(t),this.#e.flood(t))}get#v(){let t=this.#i?this.#s:null;return t?.readyState===WebSocket.OPEN?t:void 0}#y(t){for(let e of this.#h)e[2]===t&&(e[1]=`${e[0]} ${f}
{}`);this.#u.delete(t)}leave(){this.#s?.close(B,"leaving")}drop(){this.#s?.close()}giveUp(t){if(this.#m)return;clearTimeout(this.#c),this.#c=void 0;let e=this.#s;this.#s=null,e?.close(B,"leaving"),this.#S(t)}hurry(){this.#c?(clearTimeout(this.#c),this.#g()):this.#p||this.#k()}#g(){this.#c=void 0;let t=new WebSocket(this.#t);this.#s=t,this.#i=!1,t.onopen=()=>{let e={token:this.#a,page:this.#n,received:this.#r};t.send(JSON.stringify(e))},t.onmessage=({data:e})=>{this.#s===t&&(this.#T(),this.#i?this.#L(e):this.#$(t,JSON.parse(e)))},t.onclose=({code:e,reason:s})=>{this.#s===t&&(this.#s=null,clearTimeout(this.#b),Tt.includes(e)?this.#S("unknown"):e===Et?this.#S(s):this.#m||this.#A())}}#T(){this.#p&&this.#e.state("connected"),this.#p=!1,this.#x(bt,()=>{this.#k()})}#k(){!this.#s||!this.#i||(this.#E(),this.#x(vt,()=>{this.#O()}))}#O(){this.#p=!0,this.#e.state("reconnecting"),this.#x(yt,()=>{let t=this.#s;this.#s=null,t?.close(),this.#A()})}#x(t,e){let s=performance.now()+t;clearTimeout(this.#b),this.#b=setTimeout(()=>{document.hidden?this.#x(t,e):performance.now()>s+kt?this.#k():e()},t)}#A(){this.#p=!1,this.#e.state("reconnecting");let t=W[Math.min(this.#w,W.length-1)];this.#w+=1,this.#c=setTimeout(()=>{this.#g()},t)}#$(t,{page:e,received:s,resumed:n}){this.#n!==null&&!n&&(this.#o=this.#r=this.#d=0,this.#h=[],this.#l=0,this.#u.clear(),this.#e.fresh()),this.#w=0,this.#n=e,this.#i=!0,this.#M(s);for(let[,r]of this.#h.slice(this.#l))t.send(r);this.#e.state("connected")}#L(t){let e=t.indexOf(`
`);if(e<0){this.#M(Number(t));return}let s=t.indexOf(" ");Number(t.slice(0,s))===this.#r+1&&(this.#r+=1,this.#I(),this.#e.frame(t.slice(s+1,e),t.slice(e+1)))}#M(t){for(;;){let e=this.#h[this.#l];if(!e||e[0]>t)break;let[,s,n]=e;this.#l+=1;let r=(this.#u.get(n)??0)-s.length;r>0?this.#u.set(n,r):this.#u.delete(n)}this.#l*2>=this.#h.length&&(this.#h.splice(0,this.#l),this.#l=0)}#I(){this.#r-this.#d>=32||document.hidden?this.#E():this.#f??=setTimeout(()=>{this.#E()},50)}#E(){clearTimeout(this.#f),this.#f=void 0,this.#d=this.#r,this.#v?.send(String(this.#r))}#S(t){this.#m=!0,clearTimeout(this.#b),clearTimeout(this.#f),this.#e.state("over",t)}};var j=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

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
`;var b="ui/notifications/sandbox-",At=["inline","fullscreen","pip"],Mt="allow-scripts allow-same-origin allow-forms",v=16*1024*1024,P=6e3,Ot=10,$t=100,G="/transom-view",Lt=12e3,It=1e3,Nt=1e3,Ct=500,qt=500,Rt=8,_t={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"},H=new CSSStyleSheet;H.replaceSync(j);function L(i){let t=i.attachShadow({mode:"open"});return t.adoptedStyleSheets=[H],t}function o(i,{text:t,...e}={},...s){let n=document.createElement(i);for(let[r,a]of Object.entries(e))n.setAttribute(r,a);return t!==void 0&&(n.textContent=t),n.append(...s),n}function J(i){let t=document.createElementNS("http://www.w3.org/2000/svg","svg");t.setAttribute("viewBox","0 0 20 20"),t.setAttribute("aria-hidden","true");let e=document.createElementNS("http://www.w3.org/2000/svg","path");return e.setAttribute("d",_t[i]),t.append(e),t}function I({view:i,shown:t=i,server:e,client:s}){let n=[o("b",{text:t})," from ",o("b",{text:e})];return s&&n.push(" for ",o("b",{text:s})),o("span",{class:"whose",part:"whose"},...n)}function N(i){let{paddingLeft:t,paddingRight:e}=getComputedStyle(i),s=i.clientWidth-parseFloat(t)-parseFloat(e)-2;return{width:Math.max(0,Math.floor(s)),maxHeight:P}}var zt=i=>i.length*3>v&&(i.length>v||new Blob([i]).size>v),y=class extends HTMLElement{#t=L(this);#a;#e;#s=0;#i=0;#n=null;#o=null;#r=0;#d=!1;#h=null;#l=null;#u=0;#f=0;#c={};start(t,e){let{view:s,origin:n,number:r,allow:a,border:h}=t,l=this.#w(t,e,"loading"),{shown:d}=this;this.origin=n,this.#a=t,this.#s=this.#i=this.#u=0,this.toggleAttribute("data-trouble",!1),h||(this.dataset.border="none"),this.own=o("span",{class:"own"},o("span",{class:"starting",text:"starting…"}));let w={class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"};this.#h=o("span",w,J("pin")),this.#o=o("span",{class:"busy",part:"busy",role:"timer",hidden:""}),this.#d=!1;let gt=o("span",{class:"buttons"},this.#p("key","What is always allowed",()=>this.#v()),this.#p("fullscreen","Full screen",()=>this.toggle("fullscreen")),this.#p("pip","Picture in the corner",()=>this.toggle("pip")),this.#p("close","Close",()=>this.close())),wt=`View ${d}`,V=`${n}${G}?${r}`;this.frame=o("iframe",{sandbox:Mt,title:wt,src:V,part:"frame"}),a&&this.frame.setAttribute("allow",a),this.frame.addEventListener("load",({target:u})=>{this.#s>0||(u.style.visibility="hidden",setTimeout(()=>{u===this.frame&&this.#s===0&&(u.src=V)},It))}),this.#t.append(F(l,this.#h,this.#o,this.own,gt),this.frame),this.setMarks({pinned:!1,grants:[]}),this.#f=setTimeout(()=>{let u=`${n} did not load in the browser`;this.#e.notify({do:"broken",view:s,reason:u,value:!0})},Lt)}#w(t,e,s){let{view:n,shown:r=n}=t;this.#e=e,this.view=n,this.shown=r,this.id||=`view-${e.mark}${n}`,this.dataset.mode="inline",this.#m(s),this.setAttribute("role","region");let a=I(t);return this.setAttribute("aria-label",`View ${a.textContent}`),a}#m(t){clearTimeout(this.#f),clearInterval(this.#r),this.frame=void 0,this.hidden=!1,this.dataset.state=t,this.#t.replaceChildren()}showGone(t,e){let{view:s,failed:n,reason:r,about:a}=t,h=this.#w(t,e,n?"failed":"closed");a&&h.append(" ",o("span",{class:"about",text:a}));let l=U(n?`It could not be shown: ${r}`:r),d={[n?"Try again":"Reopen"]:()=>e.notify({do:"retry",view:s}),[n?"Close":"Dismiss"]:()=>e.notify({do:"closed",view:s})};this.#t.append(F(h),O(this.shown,l,d,n?"alert":"group")),n&&this.#b("failed",r)}#b(t,e){let s={view:this.view,kind:t,message:e};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:s}))}note(t,e={}){this.#m("noted"),this.toggleAttribute("data-held",!1);let s=this.getAttribute("view")??this.shown;this.#t.append(O(s,t,e))}#p(t,e,s){let n={type:"button",title:e,"aria-label":`${e}: ${this.shown}`},r=o("button",n,J(t));return r.addEventListener("click",s),this.#c[t]=r,r}disconnectedCallback(){clearTimeout(this.#f),clearInterval(this.#r)}get window(){return this.frame?.contentWindow}name({name:t,version:e}){let{uri:s}=this.#a,n=`calls itself “${t}” ${e}`.trimEnd();this.own.textContent=`${t?`${n} · `:""}${s}`,this.own.title=this.own.textContent}setMarks({pinned:t,grants:e}){if(!this.frame)return;this.#h.hidden=!t,this.#c.key.hidden=e.length===0;let s=this.#l?.isConnected&&e.length>0;this.#l?.remove(),this.#l=Vt(this.shown,e,({tool:n,by:r})=>this.#e.notify({do:"withdraw",view:this.view,tool:n,by:r})),s?this.#v():this.#c.key.setAttribute("aria-expanded","false")}#v(){let t=!this.#l.isConnected;t?this.#t.querySelector(".caption").after(this.#l):this.#l.remove(),this.#c.key.setAttribute("aria-expanded",String(t)),this.#e.hold(this)}toggle(t){this.setMode(this.dataset.mode===t?"inline":t)}setMode(t){if(At.includes(t)){t!=="inline"&&this.#e.makeRoom(this,t),this.dataset.mode!==t&&this.#e.hold(this),this.dataset.mode=t;for(let e of["fullscreen","pip"])this.#c[e].setAttribute("aria-pressed",String(t===e));this.#e.rearrange(),this.sendMode()}}sendMode(){let{clientWidth:t,clientHeight:e}=this.frame,s=this.dataset.mode,n=s==="inline"?N(this.#e.place):{width:t,height:e};this.#e.notify({do:"mode",view:this.view,mode:s,size:n})}close(){this.hidden=!0,this.#e.rearrange(),this.#e.notify({do:"closed",view:this.view})}resize(t){let e=Math.min(Math.ceil(Number(t?.height)),P);e>0&&(this.frame.style.height=`${e}px`,!(Math.abs(e-this.#u)<Rt)&&(this.#u=e,this.#e.hold(this)))}post(t){this.window?.postMessage(t,this.origin),this.look()}look(){let{frame:t,window:e}=this;e&&(e.length>0?this.#d=!0:this.#d&&(this.#d=!1,setTimeout(()=>{this.frame!==t||e.length>0||this.#g({do:"vanished",reason:"its page crashed or was unloaded"})},Ct)))}receive(t){let e=t?.method;if(typeof e=="string"){if(e.startsWith(b)){e===`${b}proxy-ready`?this.#k():e===`${b}view-gone`&&this.#g({do:"vanished",reason:"its page shows something else now"});return}e==="ui/notifications/size-changed"?this.resize(t.params):e==="ui/notifications/initialized"&&(this.dataset.state="live")}let s;try{s=JSON.stringify(t)}catch{s=void 0}s===void 0?this.#y(t,"is not JSON"):zt(s)?this.#y(t,`is larger than ${v} bytes`):this.#e.send(this.view,s)}#y(t,e){let{id:s}=t??{};if(this.#g({do:"refused",reason:`A message ${e}`}),t?.method===void 0&&(typeof s=="number"||typeof s=="string")){let n={code:-32603,message:`The View's answer ${e}: it was not passed on`};this.#e.send(this.view,JSON.stringify({jsonrpc:"2.0",id:s,error:n}))}}#g(t){this.#i+=1,this.#i<=$t&&this.#e.notify({view:this.view,...t})}setTrouble({reason:t,busyFor:e}){if(!this.frame||(this.#T(e),this.#n?.remove(),this.toggleAttribute("data-trouble",!!t),!t))return;let{view:s,shown:n}=this;this.#n=O(n,`It does not respond: ${U(t)}`,{Reload:()=>this.#e.notify({do:"reload",view:s}),Close:()=>this.close()}),this.frame.before(this.#n),this.#e.hold(this),this.#b("unresponsive",t)}#T(t){if(clearInterval(this.#r),this.#o.hidden=t===null,t===null)return;let e=performance.now()-t*1e3,s=()=>{this.#o.textContent=`busy for ${Math.round((performance.now()-e)/1e3)} s`};s(),this.#r=setInterval(s,1e3)}#k(){if(clearTimeout(this.#f),this.frame.style.visibility="",this.#s+=1,this.#s>Ot){this.#e.notify({do:"broken",view:this.view,reason:"it keeps reloading itself"});return}let{html:t,allow:e}=this.#a;this.post({jsonrpc:"2.0",method:`${b}resource-ready`,params:{html:t,allow:e}})}},F=(...i)=>o("div",{class:"caption",part:"caption"},...i),U=i=>i.replace(/\.?$/,".");function O(i,t,e,s="alert"){let n=Object.entries(e).map(([a,h])=>{let l=o("button",{type:"button",text:a,"aria-label":`${a}: ${i}`});return l.addEventListener("click",()=>{for(let d of n)d.disabled=!0;h()}),l});return o("div",{class:"trouble",part:"note",role:s},o("p",{text:t}),...n)}function Vt(i,t,e){let s=t.map(r=>{let a=r.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${r.shown}: ${i}`,l=o("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,e(r)});let d=o("span",{},a,o("code",{text:r.shown}));return o("li",{},d,l)}),n={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`};return o("div",n,o("p",{text:"You are not asked before"}),o("ul",{},...s))}var $=(i,t)=>`${i.number} ${t}`,k=class{#t=new Map;#a=new Map;#e=0;#s;constructor(t){this.#s=t,window.addEventListener("message",({source:e,origin:s,data:n})=>{let r=this.#a.get(e);r?.origin===s&&r.receive(n)}),setInterval(()=>{for(let e of this.#t.values())e.look()},Nt)}get(t,e){return this.#t.get($(t,e))}mount(t,e){let s=this.#i(t,e.view);s.start(e,this.#o(t,s)),this.#a.set(s.window,s),this.#n(s),s.placed&&s.sendMode()}showGone(t,e){let s=this.#i(t,e.view);s.showGone(e,this.#o(t,s)),e.failed?this.#n(s):this.#r()}clearStorage(t){for(let e of t){let s=o("iframe",{src:`${e}${G}`,sandbox:"",hidden:""});s.addEventListener("load",()=>s.remove()),document.body.append(s)}}#i(t,e){this.drop(t,e);let s=this.#s(e);return s.agent=t,this.#t.set($(t,e),s),s}#n(t){this.#r(),t.placed||t.scrollIntoView({block:"nearest"})}#o(t,e){return{place:e.placed?e:e.parentElement,mark:t.number?`${t.number}:`:"",notify:t.notify,send:t.send,makeRoom:this.#d,rearrange:this.#h,hold:this.#r}}drop(t,e){let s=this.get(t,e);s&&(this.#t.delete($(t,e)),this.#a.delete(s.window),s.placed?s.note(""):s.remove(),this.#r(),this.#h())}clear(t){for(let e of[...this.#t.values()])e.agent===t&&this.drop(t,e.view)}pointAt(t,e){let s=t&&this.get(t,e);for(let n of this.#t.values())n.toggleAttribute("data-question",n===s);if(s?.frame)return this.#r(),s.scrollIntoView({block:"nearest"}),s.frame}#r=t=>{let e=s=>{for(let n of this.#t.values())n.toggleAttribute("data-held",s&&n!==t)};e(!0),clearTimeout(this.#e),this.#e=setTimeout(e,qt,!1)};reached(t,e){for(let s of this.#t.values())s.agent===t&&s.toggleAttribute("data-lost",!e)}resized(){for(let t of this.#t.values())t.frame&&(t.placed||t.dataset.mode!=="inline")&&t.sendMode()}get fullscreen(){return[...this.#t.values()].find(t=>t.dataset.mode==="fullscreen"&&!t.hidden)}#d=(t,e)=>{for(let s of this.#t.values())s!==t&&s.dataset.mode===e&&s.setMode("inline")};#h=()=>{let t=this.fullscreen;document.body.toggleAttribute("data-covered",t!==void 0);for(let e of this.#t.values())e.inert=t!==void 0&&e!==t}};var x=class{#t;#a;#e;state="connecting";constructor(t,{url:e,token:s},n){this.number=t,this.#t=n.views,this.#a=n.questions,this.#e=n,this.link=new p({url:e,token:s,on:this.#o})}notify=t=>this.link.send(f,JSON.stringify(t));send=(t,e)=>this.link.send(t,e);#s={mount:t=>this.#t.mount(this,t),unmount:({view:t})=>this.#t.drop(this,t),trouble:t=>this.#t.get(this,t.view)?.setTrouble(t),gone:t=>this.#t.showGone(this,t),marks:t=>this.#t.get(this,t.view)?.setMarks(t),clear:({origins:t})=>this.#t.clearStorage(t),named:t=>this.#t.get(this,t.view)?.name(t),mode:({view:t,mode:e})=>this.#t.get(this,t)?.setMode(e),ask:t=>this.#a.ask(this,t,e=>this.#i(t,e)),unask:({id:t})=>this.#a.withdraw(this,t),download:({name:t,mime:e,data:s})=>Wt(t,e,s)};#i({id:t,kind:e,url:s},n){this.notify({do:"answer",id:t,value:n}),e==="link"&&n&&window.open(s,"_blank","noopener,noreferrer")}#n(){this.#t.clear(this),this.#a.clear(this)}#o={frame:(t,e)=>{let s=JSON.parse(e);t===f?(this.#s[s.do]??this.#e.onMessage)(s):this.#t.get(this,t)?.post(s)},state:(t,e)=>{this.state=t,t==="over"?this.#n():this.#t.reached(this,t==="connected"),this.#e.onState(this,e)},fresh:()=>{this.#n(),this.#e.onFresh?.()},flood:t=>{this.#t.drop(this,t),this.notify({do:"broken",view:t,reason:"it sends more than the host takes"})}}};function Wt(i,t,e){let s=Uint8Array.from(atob(e),r=>r.charCodeAt(0)),n=URL.createObjectURL(new Blob([s],{type:t}));o("a",{href:n,download:i}).click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}var K=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var C="transom-token",q="transom-joined";var m=new BroadcastChannel(`transom ${location.pathname}`);function D(){let i=new URLSearchParams(location.hash.slice(1)).get("token");return i&&(sessionStorage.setItem(C,i),history.replaceState(null,"",location.pathname)),i??sessionStorage.getItem(C)??""}function X(i){sessionStorage.setItem(q,JSON.stringify(i))}function Y(){try{return JSON.parse(sessionStorage.getItem(q)??"[]")}catch{return[]}}function Q(i){m.addEventListener("message",({data:t})=>{if(t.do!=="ask"||!i())return;let e=Object.fromEntries([C,q].map(s=>[s,sessionStorage.getItem(s)]));m.postMessage({do:"kept",kept:e})})}function Z(){return new Promise(i=>{let t=setTimeout(()=>{i(null)},1e3);m.addEventListener("message",function e({data:s}){s.do==="kept"&&(clearTimeout(t),m.removeEventListener("message",e),i(()=>{for(let[n,r]of Object.entries(s.kept))sessionStorage.setItem(n,r??"");location.reload()}))}),m.postMessage({do:"ask"})})}var Bt=20,tt=3e4,jt=/^http:\/\/127\.0\.0\.1:\d{1,5}$/,T=class{#t=new Map;#a=null;#e=0;#s;#i;#n;constructor({views:t,questions:e,onState:s,onConnected:n,onNotice:r}){this.#s={views:t,questions:e,onState:(a,h)=>this.#d(a,h),onMessage:({do:a,origin:h,token:l,text:d})=>{a==="join"?this.join(h,l):a==="notice"&&r(d)}},this.#i=s,this.#n=n}start(t,e){let s=Y();this.#a=this.#o(t,{url:t,token:e});for(let n of s)n.url!==t&&this.join(n.origin,n.token);return this.#a}join(t,e){if(!jt.test(t)||typeof e!="string")return;let s=`${t.replace("http","ws")}/socket`,n=this.#t.get(s);!n&&this.#t.size>=Bt||(n?.link.giveUp("it joined again"),this.#o(s,{url:s,token:e,origin:t}),this.#r())}#o(t,e){let s=new x(this.#e,e,this.#s);return this.#e+=1,s.url=t,s.options=e,this.#t.set(t,s),s}#r(){let t=[...this].map(({options:s})=>s).filter(({origin:s})=>s),e=this.#a?.state==="connected";X(e?t:[])}[Symbol.iterator](){return this.#t.values()}#d(t,e){clearTimeout(t.losing),t.state==="over"&&this.#t.get(t.url)===t&&this.#t.delete(t.url),this.#r(),t.state==="reconnecting"&&(t.losing=setTimeout(()=>this.#h(t),tt)),t.state==="connected"&&this.#n(t);let s=[...this].map(({state:n})=>n);s.length===0?this.#i("over",!0,e):s.includes("reconnecting")?this.#i("reconnecting",!s.includes("connected")):s.includes("connected")&&this.#i("connected",!1)}#h(t){[...this].some(({state:e})=>e==="connected")?t.link.giveUp("it is gone"):t.losing=setTimeout(()=>this.#h(t),tt)}};var et=500,Jt=1500,Ft=100,st=2e4,Ut=i=>i.length<=st?i:`${i.slice(0,st)}
… (${i.length} characters)`,Pt=i=>{let t=["bytes","KB","MB"],e=0;for(;i>=1024&&e<2;e+=1)i/=1024;return`${e?i.toFixed(1):i} ${t[e]}`},c=i=>o("p",{text:i}),_=i=>o("pre",{text:Ut(i),tabindex:"0"}),it={approve:{title:({tool:i,by:t,opens:e})=>[e?"Let ":t==="view"?"Let the View call its server's ":"Let the model call ",o("code",{text:i}),e?" open a View?":"?"],body:i=>[...Gt(i),...Ht(i),...Kt(i)],answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]},link:{title:({url:i})=>[i.startsWith("mailto:")?"Write this mail?":`Open ${nt(i).host}?`],body:({url:i})=>[c("The View wants to open:"),_(nt(i).href)],answers:[["Open",!0],["Refuse",!1]]},download:{title:({files:i})=>[i.length===1?"Save this file?":`Save ${i.length} files?`],body:({files:i})=>[c("The View wants to save:"),_(i.map(t=>`${t.name}  (${Pt(t.bytes)})`).join(`
`))],answers:[["Save",!0],["Refuse",!1]]},pin:{title:()=>["Keep this View open?"],body:({reason:i})=>[c("It would not be closed to make room for others, until you close it."),...i?[c("The View says why:"),o("blockquote",{text:i})]:[]],answers:[["Keep open",!0],["Refuse",!1]]},withdrawn:{title:()=>["That question was withdrawn"],body:()=>[c("Whoever asked does not need an answer any more.")],answers:[["Next question",null]]}},R={asker:null,question:{kind:"withdrawn"},onAnswer(){}};function nt(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Gt({description:i,opens:t}){return i?[c(`The ${t?"server":"View"} says what it does:`),o("blockquote",{text:i})]:[]}function Ht({arguments:i}){return Object.keys(i).length===0?[c("It is called without arguments.")]:[c("It is called with:"),_(JSON.stringify(i,null,2))]}function Kt({changed:i,granted:t=[]}){let e=[];return i&&e.push("You always allowed this tool. It has changed since, so you are asked again."),t.length&&e.push(`You always allow this View: ${t.join(", ")}.`),e.map(c)}function Dt(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var E=class{#t;#a=o("div",{class:"questions","aria-live":"polite"});#e;#s;#i=[];#n=null;#o=null;#r=[];#d=null;#h=et;#l=0;#u=0;#f=!1;constructor(t,e,s=()=>{}){this.#t=t,this.#e=e,this.#s=s,L(t).append(this.#a),addEventListener("pointerdown",()=>this.#v(),!0),addEventListener("keydown",({key:n})=>["Enter"," "].includes(n)&&this.#v(),!0),addEventListener("resize",()=>this.#y())}ask(t,e,s){it[e.kind]&&(this.#i.push({asker:t,question:e,onAnswer:s}),this.#n?this.#p():this.#m(this.#i.shift()))}withdraw(t,e){this.#c(s=>s.asker===t&&s.question.id===e)}clear(t){this.#c(e=>e.asker===t)}#c(t){this.#i=this.#i.filter(s=>!t(s));let e=this.#i.length>0;this.#n&&t(this.#n)?this.#m(e?R:null):this.#n===R&&!e?this.#m(null):this.#p()}#w(t){let{onAnswer:e}=this.#n;this.#m(this.#i.shift()??null),e(t)}#m(t){let e=Dt();this.#n=t,this.#o?.remove(),this.#o=t&&this.#b(t.question);let s=t?this.#e(t.asker,t.question):this.#e();clearInterval(this.#u),this.#o&&(this.#h=e instanceof HTMLIFrameElement?Jt:et,this.#u=setInterval(()=>this.#g(),Ft),this.#a.append(this.#o),(t.question.kind!=="approve"&&e===s||!e||e===document.body)&&this.#o.focus(),this.#y()),this.#p()}#b(t){let{title:e,body:s,answers:n}=it[t.kind],r=o("h2",{},...e(t));this.#d=o("span",{class:"more"}),this.#r=n.map(([h,l],d)=>{let w=o("button",{type:"button",text:h,class:d?"":"main"});return w.addEventListener("click",()=>this.#f&&this.#w(l)),w});let a=o("section",{class:"question",part:"question",role:"alertdialog","aria-label":r.textContent,tabindex:"-1"},o("div",{class:"asker"},t.server?I(t):"",this.#d),r,...s(t),o("div",{class:"buttons"},...this.#r));return a.addEventListener("keydown",h=>{h.key==="Escape"&&(h.stopPropagation(),this.#w(n.at(-1)[1]))}),a}#p(){let t=this.#i.length,e=t+(this.#n&&this.#n!==R?1:0);this.#o&&(this.#d.textContent=t?`and ${t} more`:""),this.#t.toggleAttribute("data-asking",!!this.#o),this.#s(e)}#v(){this.#f||this.#y()}#y(){this.#l=performance.now(),this.#g()}#g(){let t=performance.now();(document.hidden||!document.hasFocus())&&(this.#l=t),this.#f=t-this.#l>=this.#h;for(let e of this.#r)e.ariaDisabled=String(!this.#f)}};var ot=3e4,ht=document.getElementById("views"),z=document.getElementById("state"),S=document.getElementById("banner"),rt=document.getElementById("notice"),g=document.getElementById("empty"),Xt=g.textContent,lt=matchMedia("(prefers-color-scheme: dark)");customElements.define("transom-view",y);var A=new k(()=>ht.appendChild(document.createElement("transom-view"))),Yt=new E(document.getElementById("questions"),(i,t)=>A.pointAt(i,t?.view),i=>{document.title=i?`(${i}) Transom`:"Transom"}),M=new T({views:A,questions:Yt,onConnected:i=>i.notify(ut()),onNotice(i){rt.textContent=i,rt.hidden=!i},onState(i,t,e){i!=="reconnecting"?Zt():z.dataset.state!==i&&Qt(t?"the agent":"an agent"),z.dataset.state=i,z.textContent=i==="connected"?"Connected":"Not connected",i==="over"?te(e):g.textContent=Xt}}),dt=0;function Qt(i){S.textContent=`No connection to ${i}. Trying again…`,S.hidden=!1,dt=setTimeout(()=>{S.textContent=`No connection to ${i} for ${ot/1e3} seconds. If it has ended, you can close this page. If it comes back, its Views do, too.`},ot)}function Zt(){clearTimeout(dt),S.hidden=!0}async function te(i){if(i==="the agent has ended")g.textContent="The agent has ended. You can close this page.";else if(i==="unknown")await ee();else{let t=i?`${i[0].toUpperCase()}${i.slice(1)}`:"The agent has hung up";ct(`${t}.`,()=>location.reload())}}async function ee(){let i=await Z();i?ct("The Views are shown in another tab of this browser.",i):g.textContent="The agent does not know this page. Open the address that it gives you now."}function ct(i,t){let e=o("button",{type:"button",text:"Show them here"});e.addEventListener("click",t,{once:!0}),g.replaceChildren(i," ",e)}var ut=()=>K({theme:lt.matches?"dark":"light",containerDimensions:N(ht)});function ft(){for(let i of M)i.notify(ut())}function pt(){for(let i of M)i.link.hurry()}var at=0;addEventListener("resize",()=>{clearTimeout(at),at=setTimeout(()=>{ft(),A.resized()},150)});lt.addEventListener("change",ft);addEventListener("keydown",({key:i})=>{i==="Escape"&&A.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>{for(let i of M)i.link.leave()});addEventListener("online",pt);document.addEventListener("visibilitychange",pt);var mt=M.start(new URL("socket",location.href).href.replace("http","ws"),D());Q(()=>mt.state==="connected");var{link:ke}=mt;export{p as Link,ke as link,A as views};
